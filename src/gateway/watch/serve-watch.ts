import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import { isKnownVersion } from '../partition/index.ts'
import { type ClientResponse, closed, type GatewayUser, type Slots, watchCheckEveryMs } from '../request/index.ts'
import { removedSince } from '../routing/index.ts'
import { bookmarkLine, expiredLine, movedLine } from './bookmark-line.ts'
import { CatchUp } from './catch-up.ts'
import { MergedWatch } from './merged-watch.ts'
import type { RightsCheck } from './rights-check.ts'
import type { SharedClient, SharedWatch } from './shared-watch.ts'
import type { SharedWatches } from './shared-watches.ts'
import type { WatchPlan } from './watch-plan.ts'
import { WatchResponse } from './watch-response.ts'
import { readWatchSelection, UnknownField } from './watch-selection.ts'

export type ServeWatchOptions = {
  readonly plan: WatchPlan
  readonly query: URLSearchParams
  readonly user: GatewayUser
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  readonly shared: SharedWatches
  readonly rights: RightsCheck
  /** How many clients catch up at a time: when a gateway starts, thousands of them come together. */
  readonly catchUps: Slots
  /** `GatewayMap.relistFrom` */
  readonly relistFrom: number
  /** Called when all parts have reported progress. @throws {StatusError} if there may be more parts. */
  areAllParts(): Promise<void>
  /** Whether the credential of the request is still valid. */
  reauthenticate(): Promise<boolean>
  /** Of events that wait for a partition. */
  maxBufferedBytes(): number
  /** Of what the client has not read. */
  readonly maxUnsentBytes: () => number
  /** Sends a response of a partition that is no watch. */
  sendAnswer(answer: TransportStreamResponse): Promise<void>
  /** A client has watches of its own, until the returned function is called. */
  openedAlone(): () => void
  slowClient?(): void
  reconnected?(partition: string): void
  passed?(events: number): void
  readonly log: (message: string, error?: unknown) => void
}

const maxRounds = 10
const mapCheckEveryMs = 1_000

/**
 * Serves a watch over several partitions: shared with the other clients of the collection where that is possible, else with watches of its own. Returns when it
 * has ended.
 * @throws {StatusError} if a partition does not answer, and nothing was sent.
 */
export async function serveWatch(response: ClientResponse, options: ServeWatchOptions): Promise<void> {
  const { plan, signal, shared, headers } = options
  const client = new WatchResponse(response, options.maxUnsentBytes, () => options.slowClient?.())
  const done = closed(response)
  if (plan.version > 0 && !(await isKnownVersion(plan.version, { parts: plan.parts, user: options.user, signal }))) {
    client.write([expiredLine(`too large resource version: ${plan.version}`)])
    client.end(false)
    return
  }
  if (plan.version > 0 && plan.version < options.relistFrom) {
    client.write([expiredLine(removedSince(plan.version, options.relistFrom))])
    client.end(false)
    return
  }
  const from = await startOf(options)
  const timer = setTimeout(() => client.end(false), plan.timeoutMs)
  try {
    // Tables and metadata have other lines.
    const isShareable = headers.accept === 'application/json' && shared.mayShare(plan)
    const close = isShareable ? await share(client, options, from) : await watchAlone(client, options, from)
    if (!close) return
    if (signal.aborted) close()
    signal.addEventListener('abort', close)
    await done
    close()
  } finally {
    clearTimeout(timer)
  }
}

/** The version that a continued watch begins after, when every partition has reached it. */
async function startOf({ plan, areAllParts, user, signal }: ServeWatchOptions): Promise<number | undefined> {
  const { parts, version, withInitial } = plan
  const reach = (at: number) => Promise.all(parts.map(({ connection }) => connection.progress(user, at, [], signal)))
  if (version > 0 || withInitial) await reach(version)
  if (withInitial) {
    // Who gets the existing objects takes them for all.
    await areAllParts()
    return undefined
  }
  if (version > 0) {
    await areAllParts()
    return version
  }
  const newest = Math.max(...(await reach(0)))
  await reach(newest)
  return newest
}

type Close = () => void

/** Returns undefined if the response has ended already. */
async function share(client: WatchResponse, options: ServeWatchOptions, from: number | undefined): Promise<Close | undefined> {
  const { plan, user, headers, signal, shared, maxBufferedBytes, sendAnswer, log } = options
  const catchUp = new CatchUp({
    parts: plan.parts.map(part => ({ partition: part.connection, pathFrom: at => plan.partPath(part, at) })),
    ...{ user, headers, from, maxBufferedBytes, signal, isCurrentAt: plan.isCurrentAt },
    write: lines => client.writeSlowly(lines),
  })
  try {
    for (let round = 1; round <= maxRounds && !signal.aborted; round++) {
      const result = await options.catchUps.run(() => (signal.aborted ? Promise.reject(signal.reason) : catchUp.round()))
      if (result.kind === 'rejected') {
        if (client.isEnded) return undefined
        // A right may be lost between two rounds: the next watch of the client gets the reason.
        if (round > 1) client.end(false)
        else await sendAnswer(result.answer)
        return undefined
      }
      if (result.kind === 'ended') {
        client.end(false)
        return undefined
      }
      client.begin()
      const watermarks = [...catchUp.watermarks.values()]
      const watch = await shared.open(plan, Math.max(...watermarks))
      if (signal.aborted || client.isEnded) return undefined
      const close = Math.min(...watermarks) >= watch.floor ? join(client, watch, catchUp, options) : undefined
      if (close) return close
    }
    log(`a watch of ${plan.table} is ended, because its client could not catch up with what happens`)
  } catch (error) {
    if (signal.aborted) return undefined
    // Nothing was sent: the client gets the reason.
    if (!client.hasBegun) throw error
    if (!(error instanceof UnknownField)) log(`a watch of ${plan.table} is ended before it was current`, error)
  }
  client.end(true)
  return undefined
}

/** Returns undefined if the client has missed too much. */
function join(client: WatchResponse, watch: SharedWatch, catchUp: CatchUp, options: ServeWatchOptions): Close | undefined {
  const { plan, query } = options
  const from = new Map(catchUp.watermarks)
  const { bookmarks } = catchUp
  let mayBookmark = !plan.marksInitialEnd
  const member: SharedClient = {
    selection: readWatchSelection(query),
    from,
    deliver(lines) {
      if (!client.write(lines)) watch.remove(member)
    },
    get bookmarks() {
      return plan.wantsBookmarks && mayBookmark ? bookmarks : undefined
    },
    isAllowed: allowedTo(options),
    end: isBroken => client.end(isBroken),
  }
  if (!watch.add(member)) return undefined
  if (plan.marksInitialEnd && bookmarks !== undefined) {
    watch.reach(Math.max(...from.values()), version => {
      mayBookmark = true
      member.deliver([bookmarkLine(bookmarks, version, true)])
    })
  }
  return () => watch.remove(member)
}

function allowedTo({ plan, user, rights, reauthenticate }: ServeWatchOptions): () => Promise<boolean> {
  let reauthenticatedMs = performance.now()
  return async () => {
    if (performance.now() - reauthenticatedMs > watchCheckEveryMs) {
      reauthenticatedMs = performance.now()
      if (!(await reauthenticate())) return false
    }
    const answers = await Promise.all(plan.parts.map(part => rights.isAllowed(part.connection, user, plan.partPath(part, 1))))
    return answers.every(isAllowed => isAllowed)
  }
}

async function watchAlone(client: WatchResponse, options: ServeWatchOptions, from: number | undefined): Promise<Close | undefined> {
  const { plan, user, headers, maxBufferedBytes, passed, reconnected, log } = options
  const { wantsBookmarks, marksInitialEnd } = plan
  const watch = new MergedWatch({
    parts: plan.parts.map(part => ({ partition: part.connection, pathFrom: at => plan.partPath(part, at) })),
    ...{ user, headers, from, wantsBookmarks, marksInitialEnd, maxBufferedBytes, log, isCurrentAt: plan.isCurrentAt },
    ...(reconnected && { reconnected }),
    write(lines) {
      passed?.(lines.length)
      return client.write(lines)
    },
    end: isBroken => client.end(isBroken),
  })
  const rejected = await watch.open()
  if (rejected) {
    await options.sendAnswer(rejected)
    return undefined
  }
  client.begin()
  const closed = options.openedAlone()
  let reauthenticateAtMs = performance.now() + watchCheckEveryMs
  const timer = setInterval(async () => {
    if (!plan.isCurrent()) {
      client.write([movedLine])
      client.end(false)
    } else if (performance.now() > reauthenticateAtMs) {
      reauthenticateAtMs = performance.now() + watchCheckEveryMs
      if (!(await options.reauthenticate().catch(() => true))) client.end(false)
    }
  }, mapCheckEveryMs).unref()
  return () => {
    clearInterval(timer)
    closed()
    watch.close()
  }
}
