import { badRequest, type KubeObject, StatusError } from '../../object/index.ts'
import type { User } from '../auth/index.ts'
import type { Quotas } from '../quota/index.ts'
import type { Kind, Registry, Verb } from '../registry/index.ts'
import type { Entry, Store, Table } from '../storage/index.ts'
import { asciiJson } from '../storage/index.ts'
import type { Revalidate, WatchHub } from '../watch/index.ts'
import { finish, type Reply, type Representation, renderEntry, send } from '../wire/index.ts'
import type { WriteResult } from './mutate.ts'
import type { PagedLists } from './paged-lists.ts'

/** What every handler works with. */
export type Services = {
  readonly store: Store
  readonly registry: Registry
  readonly quotas: Quotas
  readonly watches: WatchHub
  readonly pages: PagedLists
  readonly maxWatchBufferBytes: number
}

/** One request for a resource, routed, authenticated and allowed. */
export type Call = {
  readonly verb: Verb
  readonly kind: Kind
  readonly table: Table
  /** Empty for cluster-scoped kinds and for all namespaces. */
  readonly namespace: string
  /** Empty for the collection. */
  readonly name: string
  readonly subresource: '' | 'status' | 'scale' | 'finalize'
  readonly query: URLSearchParams | undefined
  readonly userAgent: string | undefined
  readonly acceptEncoding: string | undefined
  readonly as: Representation
  readonly user: User
  readonly contentType: string
  /** The body as text; empty when there is none. */
  readonly body: string
  readonly response: Reply
  /** Of updates and patches that may create: throws when this user may not. */
  readonly checkCreate?: () => void
  /** Of watches: see `MayGoOn`. */
  readonly revalidate?: Revalidate
  /** Has a say in what is written of this kind. */
  readonly admit?: AdmissionPlugin
}

/**
 * Looks at an object before it is written, knowing who asks; `before` is what it replaces.
 * @throws {StatusError} to refuse it.
 */
export type AdmissionPlugin = (call: Call, object: KubeObject, before: KubeObject | undefined) => void

export function keyOf(call: { namespace: string; name: string }): string {
  return call.namespace ? `${call.namespace}/${call.name}` : call.name
}

/** Answers a write with the object it left. */
export function sendOutcome(call: Call, outcome: WriteResult, code: number, warnings: readonly string[], nowMs: number): void {
  if (outcome.entry) sendEntry(call, outcome.entry, code, warnings, nowMs)
  else sendObject(call, outcome.object!, code, warnings)
}

export function sendEntry(call: Call, entry: Entry, code: number, warnings: readonly string[], nowMs: number): void {
  send(call.response, code, call.as.contentType, renderEntry(call.kind, entry, call.as, nowMs), warnings)
}

export function sendObject(call: Call, object: KubeObject | object, code: number, warnings?: readonly string[]): void {
  send(call.response, code, call.as.contentType, finish(asciiJson(object), call.as), warnings)
}

/** A whole number from the query; undefined when absent or negative. Refused in the words of Kubernetes. */
export function readCount(query: URLSearchParams | undefined, name: string): number | undefined {
  const text = query?.get(name)
  if (text === undefined || text === null || text === '') return undefined
  const value = Number(text)
  if (!/^[-+]?[0-9]+$/.test(text) || !Number.isSafeInteger(value)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text.slice(0, 40))}: invalid syntax`)
  }
  return value < 0 ? undefined : value
}

export function methodNotAllowed(): StatusError {
  return new StatusError('MethodNotAllowed', 'the server does not allow this method on the requested resource', { details: {} })
}
