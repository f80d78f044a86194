import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import { type StatusCause, StatusError } from '../../kubernetes/object/index.ts'
import { discardBody, isKnownVersion, type Partition } from '../partition/index.ts'
import type { GatewayUser } from '../request/index.ts'
import { listVersionOf, type MergedPart, partQuery } from '../routing/index.ts'
import { partialParameter } from './available-parts.ts'
import { mergeLists, withMetadata } from './merge-lists.ts'
import { readPageToken, writePageToken } from './page-token.ts'

export type MergedListOptions = {
  readonly parts: readonly (MergedPart & { readonly connection: Partition })[]
  readonly path: string
  readonly query: URLSearchParams
  readonly table: string
  readonly user: GatewayUser
  readonly headers: Readonly<Record<string, string>>
  /** Of all parts, those that do not answer included ({@link partsKey}). */
  readonly partsKey: string
  readonly tokenKey: Uint8Array
  readonly signal: AbortSignal
  /** Called when the parts that answer the request have reported progress. @throws {StatusError} if there may be more of them. */
  areAllParts(): Promise<void>
}

/**
 * A list over several partitions, all of which answer at one resource version. Never a part of it: an informer would delete what is missing.
 * With `limit` each page is of one partition, in the order of their names.
 * @throws {StatusError} ServiceUnavailable naming the partition that does not answer, Expired if the partitions of a page token are not known any more.
 */
export async function readMergedList(options: MergedListOptions): Promise<TransportStreamResponse> {
  const parts = [...options.parts].sort((a, b) => (a.partition < b.partition ? -1 : 1))
  const sorted = { ...options, parts }
  const limit = Number(options.query.get('limit') ?? 0)
  const isPaged = options.query.get('continue') || (limit > 0 && options.query.get('resourceVersion') !== '0')
  return isPaged ? await readPage(sorted) : await readAll(sorted)
}

/** The version that all partitions have reached: what any of them has answered before is in it. */
async function newestVersion({ parts, user, signal }: MergedListOptions, atLeast = 0): Promise<number> {
  const versions = await Promise.all(parts.map(({ connection }) => connection.progress(user, atLeast, [], signal)))
  return Math.max(...versions, atLeast)
}

async function versionOf(options: MergedListOptions): Promise<number> {
  const wanted = listVersionOf(options.query)
  if (wanted.kind === 'newest') return await newestVersion(options)
  if (wanted.kind === 'exact') {
    // Not for the version: with their progress the partitions report which Partitions they know now.
    await newestVersion(options)
    return wanted.version
  }
  if (await isKnownVersion(wanted.version, options)) return await newestVersion(options, wanted.version)
  throw tooLarge(wanted.version)
}

/** Clients of Kubernetes know it by its cause, and list again without a version. */
const tooLarge = (version: number) =>
  new StatusError('Timeout', `Timeout: Too large resource version: ${version}: no partition has reached it`, {
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' } as StatusCause],
      retryAfterSeconds: 1,
    },
  })

async function readAll(options: MergedListOptions): Promise<TransportStreamResponse> {
  const version = await versionOf(options)
  await options.areAllParts()
  const abort = new AbortController()
  const signal = AbortSignal.any([abort.signal, options.signal])
  const responses = await Promise.all(options.parts.map(part => readPart(options, part, version, undefined, signal))).catch(error => {
    abort.abort()
    throw error
  })
  const rejected = responses.find(({ status }) => status !== 200)
  const [first] = responses
  if (rejected) {
    for (const { body } of responses) if (body !== rejected.body) discardBody(body)
    return rejected
  }
  return { ...(first as TransportStreamResponse), body: mergeLists(responses.map(({ body }) => body)) }
}

async function readPage(options: MergedListOptions): Promise<TransportStreamResponse> {
  const { query, parts, partsKey: key, tokenKey } = options
  const scope = scopeOf(options)
  const text = query.get('continue')
  const token = text ? readPageToken(text, scope, tokenKey) : undefined
  let at = token ? parts.findIndex(({ partition }) => partition === token.partition) : 0
  // The others may not answer: this page does not need them.
  if (token) await parts[at]?.connection.progress(options.user, 0, [], options.signal)
  const version = token?.version ?? (await versionOf(options))
  await options.areAllParts()
  if (at < 0 || (token && token.parts !== key))
    throw new StatusError(
      'Expired',
      'The provided continue parameter is of a list over other partitions than there are now: list again from the start.',
    )
  let inner = token?.inner
  for (;;) {
    const part = parts[at]
    if (!part) throw new Error('bug: a page of no partition')
    const response = await readPart(options, part, version, inner, options.signal)
    if (response.status !== 200) return response
    // A page is small: the client has asked for `limit` objects.
    const chunks: Buffer[] = []
    for await (const chunk of response.body) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const { metadata, count } = readFrame(body)
    const next = metadata.continue ? part : parts[at + 1]
    // A page without objects would make clients ask once more for nothing.
    if (count === 0 && next && next !== part) {
      at++
      inner = undefined
      continue
    }
    const isLast = next === undefined
    const continueToken = isLast
      ? ''
      : writePageToken({ version, partition: next.partition, inner: String(metadata.continue ?? ''), parts: key, scope }, tokenKey)
    const headOf = (head: string) =>
      withMetadata(head, ({ remainingItemCount: _, continue: hadContinue, ...rest }) => ({
        ...rest,
        resourceVersion: String(version),
        ...((continueToken !== '' || hadContinue !== undefined) && { continue: continueToken }),
      }))
    return { ...response, body: mergeLists([chunksOf(body)], headOf) }
  }
}

async function* chunksOf(body: Buffer): AsyncGenerator<Buffer> {
  yield body
}

function readFrame(body: Buffer): { metadata: { continue?: string }; count: number } {
  const {
    metadata = {},
    items,
    rows,
  } = JSON.parse(body.toString()) as { metadata?: { continue?: string }; items?: unknown[]; rows?: unknown[] }
  return { metadata, count: (items ?? rows ?? []).length }
}

async function readPart(
  { path, query, table, user, headers }: MergedListOptions,
  part: MergedListOptions['parts'][number],
  version: number,
  inner: string | undefined,
  signal: AbortSignal,
): Promise<TransportStreamResponse> {
  const own = partQuery(query, part, table)
  own.delete('continue')
  own.delete(partialParameter)
  if (inner) {
    own.set('continue', inner)
    own.delete('resourceVersion')
    own.delete('resourceVersionMatch')
  } else {
    own.set('resourceVersion', String(version))
    own.set('resourceVersionMatch', 'Exact')
  }
  return await part.connection.stream({ method: 'GET', path: `${path}?${own}`, user, headers, signal })
}

function scopeOf({ path, query }: MergedListOptions): string {
  return JSON.stringify([path, ...['labelSelector', 'fieldSelector', 'shardSelector', partialParameter].map(name => query.get(name) ?? '')])
}
