import type { Partition } from '../partition/index.ts'
import { type MergedPart, partQuery } from '../routing/index.ts'

export type WatchPart = MergedPart & { readonly connection: Partition }

/** What a client watches, and from where it begins. */
export type WatchPlan = {
  readonly table: string
  readonly isNamespaced: boolean
  readonly parts: readonly WatchPart[]
  /** Of the collection in these partitions, whatever is selected. */
  readonly key: string
  /** It begins with the objects that exist; if not, with what has happened since `version` (0: now). */
  readonly withInitial: boolean
  readonly version: number
  /** The existing objects end with the bookmark that WatchList clients wait for. */
  readonly marksInitialEnd: boolean
  readonly wantsBookmarks: boolean
  readonly timeoutMs: number
  /** The path of the watch in one partition; `from` undefined: with the objects that exist. */
  partPath(part: MergedPart, from: number | undefined): string
  /** As {@link partPath}, of everything. */
  sharedPath(part: MergedPart, from: number | undefined): string
  /** Whether the collection is still in these partitions. */
  isCurrent(): boolean
  /** As {@link isCurrent}, when the map of the gateway is at least that of a partition. @throws {StatusError} ServiceUnavailable if it stays older. */
  isCurrentAt(epoch: number): boolean | Promise<boolean>
}

const defaultTimeoutMs = 30 * 60_000

/** Reads the query of a watch. What is not valid is rejected by the partitions, in the words of Kubernetes. */
export function planWatch({
  parts,
  path,
  query,
  table,
  isNamespaced,
  isCurrent,
  isCurrentAt,
}: Pick<WatchPlan, 'parts' | 'table' | 'isNamespaced' | 'isCurrent' | 'isCurrentAt'> & {
  readonly path: string
  readonly query: URLSearchParams
}): WatchPlan {
  const sendsInitial = query.get('sendInitialEvents')
  const version = Number(query.get('resourceVersion') ?? 0) || 0
  const withInitial = sendsInitial === null ? !version : sendsInitial === 'true' || sendsInitial === '1'
  const wantsBookmarks = /^(true|1)$/.test(query.get('allowWatchBookmarks') ?? '')
  const everything = new URLSearchParams({ watch: 'true' })
  const names = parts.map(({ partition, excludedNamespaces }) => [partition, ...excludedNamespaces])
  return {
    ...{ table, isNamespaced, parts, version, withInitial, wantsBookmarks, isCurrent, isCurrentAt },
    key: JSON.stringify([path, names]),
    marksInitialEnd: withInitial && sendsInitial !== null && wantsBookmarks,
    timeoutMs: Number(query.get('timeoutSeconds') ?? 0) * 1_000 || defaultTimeoutMs * (1 + Math.random()),
    partPath: (part, from) => pathOf(path, partQuery(query, part, table), from),
    sharedPath: (part, from) => pathOf(path, partQuery(everything, part, table), from),
  }
}

function pathOf(path: string, query: URLSearchParams, from: number | undefined): string {
  query.delete('timeoutSeconds')
  query.set('allowWatchBookmarks', 'true')
  if (from === undefined) {
    // What the client has asked for is left to the partitions, which reject what is not valid.
    if (query.has('sendInitialEvents')) return `${path}?${query}`
    query.set('sendInitialEvents', 'true')
    query.set('resourceVersionMatch', 'NotOlderThan')
  } else {
    query.delete('sendInitialEvents')
    query.delete('resourceVersionMatch')
    query.set('resourceVersion', String(from))
  }
  return `${path}?${query}`
}
