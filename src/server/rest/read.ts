import { once } from 'node:events'
import { createGzip, type Gzip } from 'node:zlib'
import { badRequest, notFound, StatusError } from '../../kube/index.ts'
import { type Entry, parseRevision } from '../storage/index.ts'
import { finish, type ListMeta, listFrame, listItem, sendLarge, takesGzip } from '../wire/index.ts'
import { type Call, keyOf, readCount, type Services, sendEntry } from './call.ts'
import { type Selection, select, selectFrom } from './selection.ts'

// Up to here a list is one string with a Content-Length; above it is streamed.
const streamFromBytes = 512 * 1024
const chunkBytes = 256 * 1024

export function get({ store }: Services, call: Call): void {
  const entry = call.table.get(keyOf(call))
  if (!entry) throw notFound(call.kind, call.name)
  const revision = readRevisionParameter(call.query)
  if (revision !== undefined && revision > store.revision) throw tooLarge(revision, store.revision)
  sendEntry(call, entry, 200, [], store.nowMs)
}

export async function list(services: Services, call: Call): Promise<void> {
  const { store, pages } = services
  const { kind, table, query } = call
  const selection = selectionOf(call)
  const limit = readCount(query, 'limit') ?? 0
  const token = query?.get('continue')
  checkListRevision(call, store.revision, Boolean(token))

  let id: string | undefined
  let entries: readonly Entry[]
  let revision = store.revision
  let offset = 0
  if (token) ({ id, entries, revision, offset } = pages.resume(token, store.nowMs))
  else entries = selectFrom(table, selection)

  const end = limit > 0 ? Math.min(entries.length, offset + limit) : entries.length
  const meta: ListMeta = { resourceVersion: String(revision) }
  if (end < entries.length) {
    meta.continue = id === undefined ? pages.keep(entries, revision, end, store.nowMs) : pages.next(id, end)
    if (selection.isWhole) meta.remainingItemCount = entries.length - end
  } else if (id !== undefined) pages.finish(id)

  const frame = listFrame(kind, call.as, meta)
  let bytes = 0
  for (let i = offset; i < end && bytes <= streamFromBytes; i++) bytes += entries[i]!.text.length
  if (bytes <= streamFromBytes || call.as.syntax === 'yaml') {
    let text = frame.head
    for (let i = offset; i < end; i++) text += (i > offset ? ',' : '') + listItem(kind, entries[i]!, call.as, store.nowMs)
    await sendLarge(call.response, call.as.contentType, finish(text + frame.end, call.as), call.acceptEncoding)
    return
  }
  await stream(call, frame, entries, offset, end, store.nowMs)
}

// Entries never change, so the list stays consistent however long the client takes; other requests get their turn
// between chunks.
async function stream(
  call: Call,
  frame: { head: string; end: string },
  entries: readonly Entry[],
  from: number,
  to: number,
  nowMs: number,
): Promise<void> {
  const { response, as, kind } = call
  const isGzip = takesGzip(call.acceptEncoding)
  response.writeHead(200, {
    'Content-Type': as.contentType,
    'Cache-Control': 'no-cache, private',
    ...(isGzip && { 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' }),
  })
  let sink: Gzip | typeof response = response
  if (isGzip) {
    sink = createGzip({ level: 1 })
    sink.pipe(response)
    response.on('close', () => sink.destroy())
    sink.on('error', () => response.destroy())
  }
  let text = frame.head
  for (let i = from; i < to; i++) {
    if (i > from) text += ','
    text += listItem(kind, entries[i]!, as, nowMs)
    if (text.length < chunkBytes) continue
    const isReady = sink.write(text, 'latin1')
    text = ''
    if (isReady) await new Promise(setImmediate)
    else await drained(sink, response)
    if (response.destroyed) return
  }
  sink.end(text + frame.end, 'latin1')
}

/** Waits until `sink` takes more, or the client is gone. The loser's listeners are removed: a long list waits many times. */
async function drained(sink: Gzip | Call['response'], response: Call['response']): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  await Promise.race([once(sink, 'drain', { signal }), once(response, 'close', { signal })]).catch(() => undefined)
  over.abort()
}

export function selectionOf(call: Call): Selection {
  const { query } = call
  const fieldSelector = query?.get('fieldSelector') ?? undefined
  const byName = call.name ? `metadata.name=${call.name}` : undefined
  return select(call.kind, call.table, call.namespace, query?.get('labelSelector') ?? undefined, byName ?? fieldSelector)
}

/** @throws {StatusError} BadRequest when it is not a number. */
export function readRevisionParameter(query: URLSearchParams | undefined): number | undefined {
  const text = query?.get('resourceVersion')
  if (!text) return undefined
  const revision = parseRevision(text)
  if (revision === undefined)
    throw badRequest(`invalid resourceVersion ${JSON.stringify(text.slice(0, 40))}: it must be a decimal number from this server, or 0`)
  return revision
}

function checkListRevision(call: Call, current: number, isContinued: boolean): void {
  const { query, table } = call
  const match = query?.get('resourceVersionMatch') ?? ''
  const text = query?.get('resourceVersion') ?? ''
  if (match === '' && text === '') return
  const revision = readRevisionParameter(query)
  if (isContinued && match !== '') throw invalidOption('resourceVersionMatch is forbidden when continue is provided')
  if (isContinued && revision) throw badRequest('specifying resource version is not allowed when using continue')
  if (match !== '' && text === '') throw invalidOption('resourceVersionMatch is forbidden unless resourceVersion is provided')
  if (match !== '' && match !== 'Exact' && match !== 'NotOlderThan') {
    throw invalidOption(
      `resourceVersionMatch: Unsupported value: ${JSON.stringify(match.slice(0, 40))}: supported values: "Exact", "NotOlderThan"`,
    )
  }
  if (match === 'Exact' && revision === 0) throw invalidOption('resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
  if (revision === undefined) return
  if (revision > current) throw tooLarge(revision, current)
  if (match === 'Exact' && revision < table.lastRevision) {
    throw new StatusError('Expired', 'The resourceVersion for the provided list is too old.')
  }
}

function invalidOption(why: string): StatusError {
  return new StatusError('Invalid', `ListOptions.meta.k8s.io "" is invalid: ${why}`, {
    details: { group: 'meta.k8s.io', kind: 'ListOptions' },
  })
}

export function tooLarge(revision: number, current: number): StatusError {
  return new StatusError('Timeout', `Too large resource version: ${revision}, current: ${current}`, {
    details: { retryAfterSeconds: 1, causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version', field: '' }] },
  })
}
