import {
  badRequest,
  forbiddenField,
  invalidOptions,
  notFound,
  type StatusCause,
  StatusError,
  unsupportedValue,
} from '../../object/index.ts'
import { parseRevision } from '../../util/index.ts'
import { type EntrySelection, select, selectAt, selectFrom } from '../registry/index.ts'
import type { StoredEntry } from '../storage/index.ts'
import { finish, type ListMeta, listFrame, listItem, sendLarge } from '../wire/index.ts'
import { type Call, keyOf, readCount, type Services, sendEntry } from './call.ts'
import { keyAfter, readContinueToken, writeContinueToken } from './continue-token.ts'
import { streamList } from './stream-list.ts'

// Up to this size a list is one string with a Content-Length; a longer list is streamed.
const streamFromBytes = 512 * 1024

export function get({ store }: Services, call: Call): void {
  const entry = call.target.table.get(keyOf(call.target))
  if (!entry) throw notFound(call.target.kind, call.target.name)
  const revision = readRevisionParameter(call.input.query)
  if (revision !== undefined && revision > store.revision) throw revisionTooLarge(revision, store.revision)
  sendEntry(call, entry, 200, [], store.nowMs)
}

export async function list(services: Services, call: Call): Promise<void> {
  const { store, pages } = services
  const { kind } = call.target
  const { query } = call.input
  const selection = selectionOf(call)
  checkListOptions(query, false)
  readCount(query, 'timeoutSeconds')
  const limit = readLimit(query)
  const { entries, revision, offset, snapshot } = readEntries(services, call, selection, limit)

  const end = limit > 0 ? Math.min(entries.length, offset + limit) : entries.length
  const meta: ListMeta = { resourceVersion: String(revision) }
  if (end < entries.length) {
    const id = snapshot ?? pages.save(scopeOf(call), entries, store.nowMs)
    meta.continue = writeContinueToken({ revision, start: keyAfter(entries[end - 1]!.key, call.target.namespace), snapshot: id })
    if (selection.isWhole || selection.shard?.isOnly) meta.remainingItemCount = entries.length - end
  } else if (snapshot !== undefined) pages.finish(snapshot, store.nowMs)
  if (selection.shard && call.output.as.form === 'object') meta.shardInfo = { selector: selection.shard.text }

  const frame = listFrame(kind, call.output.as, meta)
  if (!mustStream(entries, offset, end)) {
    let text = frame.head
    for (let i = offset; i < end; i++) text += (i > offset ? ',' : '') + listItem(kind, entries[i]!, call.output.as, store.nowMs)
    await sendLarge(call.output.response, call.output.as.contentType, finish(text + frame.end, call.output.as), call.output.acceptEncoding)
    return
  }
  await streamList(call, frame, { entries, from: offset, to: end, nowMs: store.nowMs })
}

/** True when these entries are too long for one string. */
export function mustStream(entries: readonly StoredEntry[], from: number, to: number): boolean {
  let bytes = 0
  for (let i = from; i < to && bytes <= streamFromBytes; i++) bytes += entries[i]!.text.length
  return bytes > streamFromBytes
}

type Pages = { entries: readonly StoredEntry[]; revision: number; offset: number; snapshot: string | undefined }

/** The entries of all pages of a list, and the offset of this page. */
function readEntries({ store, pages }: Services, call: Call, selection: EntrySelection, limit: number): Pages {
  const { table } = call.target
  const { query } = call.input
  const token = query?.get('continue')
  const revision = readRevisionParameter(query)
  if (!token) {
    if (revision !== undefined && revision > store.revision) throw revisionTooLarge(revision, store.revision)
    const match = query?.get('resourceVersionMatch') ?? ''
    // As in Kubernetes: without resourceVersionMatch, a limit makes the revision exact.
    const isExact = revision && (match === 'Exact' || (match === '' && limit > 0))
    if (!isExact) return { entries: selectFrom(table, selection), revision: store.revision, offset: 0, snapshot: undefined }
    const entries = selectAt(table, selection, revision)
    if (!entries) throw new StatusError('Expired', 'The resourceVersion for the provided list is too old.')
    return { entries, revision, offset: 0, snapshot: undefined }
  }
  if (revision) throw badRequest('specifying resource version is not allowed when using continue')
  const { revision: at, start, snapshot } = readContinueToken(token)
  if (at > store.revision) throw revisionTooLarge(at, store.revision)
  const kept = pages.find(snapshot, scopeOf(call), store.nowMs)
  const entries = kept ?? (at < 0 ? selectFrom(table, selection) : selectAt(table, selection, at))
  if (!entries) {
    const message =
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.'
    throw new StatusError('Expired', message, { continueToken: writeContinueToken({ revision: -1, start, snapshot: undefined }) })
  }
  const first = call.target.namespace ? `${call.target.namespace}/${start}` : start
  return { entries, revision: at < 0 ? store.revision : at, offset: firstFrom(entries, first), snapshot: kept && snapshot }
}

/** Identifies a list regardless of its pages: tokens of another list find no snapshot. */
function scopeOf({ target: { table, namespace }, input: { query } }: Call): string {
  const selectors = ['labelSelector', 'fieldSelector', 'shardSelector'].map(name => query?.get(name) ?? '')
  return JSON.stringify([table.name, namespace, ...selectors])
}

function firstFrom(entries: readonly StoredEntry[], key: string): number {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (entries[middle]!.key < key) low = middle + 1
    else high = middle
  }
  return low
}

// As in Kubernetes, a list at revision 0 ("any state") is not paged.
function readLimit(query: URLSearchParams | undefined): number {
  const limit = readCount(query, 'limit') ?? 0
  return query?.get('resourceVersion') === '0' && !query.get('continue') ? 0 : limit
}

export function selectionOf(call: Call): EntrySelection {
  const { query } = call.input
  const fieldSelector = query?.get('fieldSelector') ?? undefined
  const byName = call.target.name ? `metadata.name=${call.target.name}` : undefined
  const labelSelector = query?.get('labelSelector') ?? undefined
  const shardSelector = query?.get('shardSelector') ?? undefined
  return select(call.target.kind, call.target.table, call.target.namespace, labelSelector, byName ?? fieldSelector, shardSelector)
}

/** @throws {StatusError} BadRequest when it is not a number. */
export function readRevisionParameter(query: URLSearchParams | undefined): number | undefined {
  const text = query?.get('resourceVersion')
  if (!text) return undefined
  const revision = parseRevision(text)
  if (revision === undefined)
    throw badRequest(
      `invalid resource version: resourceVersion: Invalid value: ${JSON.stringify(text.slice(0, 40))}: strconv.ParseUint: parsing ${JSON.stringify(text.slice(0, 40))}: invalid syntax`,
    )
  return revision
}

/**
 * Checks which parameters of a list or watch may be combined, like `ValidateListOptions` of Kubernetes.
 * @throws {StatusError} Invalid.
 */
export function checkListOptions(query: URLSearchParams | undefined, isWatch: boolean): void {
  const match = query?.get('resourceVersionMatch') ?? ''
  const sendInitialEvents = query?.get('sendInitialEvents') ?? undefined
  const isContinued = Boolean(query?.get('continue'))
  if (query === undefined || (match === '' && sendInitialEvents === undefined && !(isWatch && isContinued))) return
  const field = 'resourceVersionMatch'
  const causes: StatusCause[] = []
  const forbid = (why: string) => causes.push(forbiddenField(field, why))
  const revision = query.get('resourceVersion') ?? ''
  if (isWatch) {
    if (sendInitialEvents === undefined && match !== '')
      forbid('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')
    else {
      if (sendInitialEvents !== undefined && match !== 'NotOlderThan')
        forbid('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')
      if (match !== 'NotOlderThan' && match !== '') causes.push(unsupportedValue(field, match, ['NotOlderThan']))
      if (isContinued) forbid('resourceVersionMatch is forbidden when continue is provided')
    }
  } else if (sendInitialEvents !== undefined) causes.push(forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  else {
    if (revision === '') forbid('resourceVersionMatch is forbidden unless resourceVersion is provided')
    if (isContinued) forbid('resourceVersionMatch is forbidden when continue is provided')
    if (match !== 'Exact' && match !== 'NotOlderThan') causes.push(unsupportedValue(field, match, ['Exact', 'NotOlderThan', '']))
    if (match === 'Exact' && revision === '0') forbid('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
  }
  if (causes.length > 0) throw invalidOptions('ListOptions', causes)
}

export function revisionTooLarge(revision: number, current: number): StatusError {
  const cause = { reason: 'ResourceVersionTooLarge', message: 'Too large resource version' } as StatusCause
  return new StatusError('Timeout', `Timeout: Too large resource version: ${revision}, current: ${current}`, {
    details: { retryAfterSeconds: 1, causes: [cause] },
  })
}
