import { StatusError } from '../../object/index.ts'
import { readBoolean } from '../../object/route.ts'
import { selectFrom } from '../registry/index.ts'
import { type Call, readCount, type Services } from './call.ts'
import { checkListOptions, readRevisionParameter, selectionOf } from './read.ts'

const defaultTimeoutMs = 30 * 60_000

/** A partition that starts. */
export const mapUnread = () =>
  new StatusError('ServiceUnavailable', 'this partition has not read the Partitions yet', { details: { retryAfterSeconds: 1 } })

/**
 * Opens a watch. Without a resource version, or with 0, it starts with the current objects. With one, it continues from there, or sends
 * 410 in the stream when history does not go back that far (invariant 6).
 */
export async function watch({ store, watches, maxWatchBufferBytes, mapEpoch }: Services, call: Call): Promise<void> {
  const { kind, table } = call.target
  const { query } = call.input
  const { response, as, gatewayWatch } = call.output
  const selection = selectionOf(call)
  const revision = readRevisionParameter(query)
  const sendInitialEvents = query?.get('sendInitialEvents') ?? undefined
  checkListOptions(query, true)
  const wantsBookmarks = readBoolean(query, 'allowWatchBookmarks')
  const timeoutSeconds = readCount(query, 'timeoutSeconds')
  const timeoutMs = timeoutSeconds ? timeoutSeconds * 1_000 : defaultTimeoutMs * (1 + Math.random())
  const withInitial = sendInitialEvents === undefined ? !revision : sendInitialEvents === 'true' || sendInitialEvents === '1'

  const from = withInitial ? store.revision : revision || store.revision
  const missed = withInitial ? [] : from > store.revision ? undefined : table.eventsSince(from)
  const { id, showsSelected, showsMap = false, endsWhenCurrent = false, known = 0 } = gatewayWatch ?? {}
  const epoch = showsMap ? mapEpoch?.() : undefined
  if (showsMap && mapEpoch && epoch === undefined) throw mapUnread()
  // The clock is raised to what the gateway has seen, so that only a change itself shows whether it is there.
  const hasKnown = known <= table.floor || table.hasEvent(known)
  const headers = { 'Content-Type': as.contentType, 'Cache-Control': 'no-cache, private' }
  response.writeHead(200, id === undefined ? headers : { ...headers, 'X-Oarlock-Watch-Known': String(table.lastRevision) })
  response.flushHeaders()
  const { revalidate } = call.caller
  const common = { kind, table, selection, as, response, wantsBookmarks, maxBufferedBytes: maxWatchBufferBytes, revalidate }
  const options = { ...common, id, showsSelected, showsMap }
  // Everything up to it is in what is sent first.
  const { revision: current } = store
  const watcher = watches.open(options, timeoutMs)
  if (epoch !== undefined) watcher.showMap(epoch)
  if (!missed || !hasKnown) {
    // Also for a revision from the future: it belongs to data before a restore, and the client has to list again.
    const oldest = `too old resource version: ${from} (${table.floor})`
    watcher.end(new StatusError('Expired', oldest).toStatus())
    return
  }
  if (withInitial) {
    const withEnd = (sendInitialEvents !== undefined && wantsBookmarks) || endsWhenCurrent
    await watcher.sendInitial(selectFrom(table, selection), withEnd ? current : undefined)
  } else await watcher.replay(missed)
  if (!endsWhenCurrent) return
  if (!withInitial) watcher.bookmark(current)
  watcher.end()
}
