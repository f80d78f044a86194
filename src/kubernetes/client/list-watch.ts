import { isReason, type KubeObject, type Resource, StatusError, type WatchEvent } from '../object/index.ts'
import type { Backoff } from '../util/backoff.ts'
import type { Client } from './client.ts'
import { type Clock, systemClock } from './clock.ts'
import { ClientClosedError } from './connection-error.ts'
import { decideListWatch, initialListWatchState, type ListWatchError, type ListWatchInput } from './decide-list-watch.ts'
import { canStreamLists, InitialEvents } from './initial-events.ts'
import type { HandleOptions } from './resource-options.ts'
import { GarbageError } from './watch-lines.ts'

/**
 * A server that does not know `sendInitialEvents` goes on without ever ending the list: after this long without a word it
 * is asked for pages instead.
 */
const initialSilenceMs = 15_000

export type ListWatchOptions<Body> = {
  /** Default: all namespaces. */
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  shardSelector?: string | undefined
  /** Ends it; nothing else does. */
  signal: AbortSignal
  /** Everything there is, as of `resourceVersion`: after the first list, and after each one that a 410 made necessary. */
  onReplace(items: KubeObject<Body>[], resourceVersion: string): void
  /**
   * Takes a list as it comes, so that a large one is never in memory as a whole: `begin` is asked before each attempt, and if
   * it says true its objects go to `add`, and {@link onReplace} is called with none at the end. What an attempt that failed
   * brought may be gone again: the next `begin` starts anew.
   */
  parts?: { begin(): boolean; add(items: KubeObject<Body>[]): void } | undefined
  /** One event after that, in order. Bookmarks come too, with an object that has only metadata.resourceVersion. */
  onEvent(event: WatchEvent<KubeObject<Body>>): void
  /**
   * Asked before a line of the watch is read; whoever knows already what it says returns its resource version, and
   * {@link onEvent} is not called for it. Reading is the largest part of the work of a watch, and a controller's own
   * writes come back on it.
   */
  skipLine?(line: string): string | undefined
  /** What went wrong; it goes on by itself after `retryInMs`. */
  onError?(error: unknown, retryInMs: number): void
  /** Default 800 ms to 30 s. */
  backoff?: Backoff | undefined
  /** How long one watch lasts before it is renewed; default 300,000, spread by a third so that watches do not renew together. */
  watchTimeoutMs?: number | undefined
  /** How long a watch may say nothing before it is taken for dead; default `watchTimeoutMs` and 10 s. */
  idleTimeoutMs?: number | undefined
  /**
   * Lists over the watch itself (WatchList: `sendInitialEvents`) where the server's version has it: one request, no pages, and
   * the server reads nothing twice. Default true; a server that refuses it or breaks off is asked for pages.
   */
  streamLists?: boolean | undefined
  /** As for a handle. */
  managedFields?: HandleOptions['managedFields']
  /** Objects per page of a list; default 500. */
  pageSize?: number | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
}

/**
 * Keeps a reader up to date with one kind for as long as `signal` allows: lists, watches from there, resumes from the
 * last version after a break, lists again after 410. Every break backs off, none ends it but the end of its client. Resolves
 * after the abort; an error thrown by a callback counts as a break and is reported to `onError`.
 */
export async function listWatch<Body>(client: Client, resource: Resource<Body>, options: ListWatchOptions<Body>): Promise<void> {
  const { signal, clock = systemClock, random = Math.random, backoff = { minMs: 800, maxMs: 30_000 } } = options
  const { namespace, labelSelector, fieldSelector, shardSelector, watchTimeoutMs = 300_000, pageSize } = options
  const handle = client.resource(resource, { managedFields: options.managedFields })
  const selection = { namespace, labelSelector, fieldSelector, shardSelector }
  let state = initialListWatchState
  let streaming: 'yes' | 'not now' | 'no' = (options.streamLists ?? true) ? 'yes' : 'no'

  const list = async (): Promise<ListWatchInput> => {
    try {
      const inParts = options.parts?.begin() ?? false
      const { items, metadata } = inParts ? await listInParts() : await handle.listAll({ ...selection, limit: pageSize, signal })
      if (signal.aborted) return { kind: 'listed', resourceVersion: metadata.resourceVersion }
      options.onReplace(items, metadata.resourceVersion)
      // A stream that broke may do better next time.
      if (streaming === 'not now') streaming = 'yes'
      return { kind: 'listed', resourceVersion: metadata.resourceVersion }
    } catch (error) {
      return report({ kind: 'list-failed', error: classify(error) }, error)
    }
  }

  const listInParts = async (): Promise<{ items: KubeObject<Body>[]; metadata: { resourceVersion: string } }> => {
    const first = await handle.list({ ...selection, limit: pageSize ?? 500, signal })
    let { metadata } = first
    options.parts?.add(first.items)
    for (let token = metadata.continue; token && !signal.aborted; ) {
      let page: typeof first
      try {
        page = await handle.list({ ...selection, limit: pageSize ?? 500, continue: token, signal })
      } catch (error) {
        if (!isReason(error, 'Expired', 'Gone')) throw error
        // The pages became too old while we read them: one answer with everything is always consistent.
        options.parts?.begin()
        page = await handle.list({ ...selection, signal })
        metadata = page.metadata
      }
      options.parts?.add(page.items)
      token = page.metadata.continue
    }
    return { items: [], metadata }
  }

  /** A watch from the version we have; without one, from the beginning, and its first events are the list. */
  const watch = async (): Promise<ListWatchInput> => {
    let initial = state.resourceVersion === undefined ? new InitialEvents<Body>(options.parts) : undefined
    const startedMs = clock.nowMs()
    const lastsMs = watchTimeoutMs * (1 - random() / 3)
    const idleTimeoutMs = options.idleTimeoutMs ?? watchTimeoutMs + 10_000
    let events = 0
    // Two bounds on silence: no byte for idleTimeoutMs, and a server (or proxy) that ignores timeoutSeconds and only sends heartbeats.
    const bound = new AbortController()
    const stop = () => bound.abort()
    signal.addEventListener('abort', stop, { once: true })
    const overdue = setTimeout(stop, lastsMs + 10_000)
    // Only of the list: what changes seldom is silent for long after it.
    const silence = initial && setTimeout(stop, Math.min(idleTimeoutMs, initialSilenceMs))
    try {
      const advance = (resourceVersion: string) => {
        events++
        // As decideListWatch answers 'advanced', which is asked once per event and needs no delay.
        state = { resourceVersion, failures: 0 }
      }
      const stream = handle.watchLines({
        ...selection,
        ...(initial
          ? { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' as const }
          : { resourceVersion: state.resourceVersion }),
        allowWatchBookmarks: true,
        timeoutSeconds: Math.max(1, Math.round(lastsMs / 1_000)),
        idleTimeoutMs,
        signal: bound.signal,
      })
      for await (const lines of stream) {
        if (initial) {
          silence?.refresh()
          const rest = initial.take(lines, line => handle.parseEvent(line))
          if (initial.resourceVersion === undefined) continue
          if (signal.aborted) break
          clearTimeout(silence)
          options.onReplace(initial.items, initial.resourceVersion)
          state = { ...state, resourceVersion: initial.resourceVersion }
          initial = undefined
          for (const event of rest) {
            options.onEvent(event)
            advance(event.object.metadata.resourceVersion)
          }
          continue
        }
        // The answers of our own writes that came in the same turn are handed over first: then their events need not be read.
        if (options.skipLine) await new Promise(resolve => setImmediate(resolve))
        for (const line of lines) {
          if (signal.aborted || bound.signal.aborted) break
          const known = options.skipLine?.(line)
          if (known !== undefined) {
            advance(known)
            continue
          }
          const event = handle.parseEvent(line)
          options.onEvent(event)
          advance(event.object.metadata.resourceVersion)
        }
      }
      if (initial) throw new GarbageError(`the watch of ${resource.plural} ended, or said nothing, before the list that it began with`)
      return { kind: 'watch-ended', durationMs: clock.nowMs() - startedMs, events }
    } catch (error) {
      if (!initial) return report({ kind: 'watch-failed', error: classify(error), events }, error)
      // 400 and 422: the feature is off there, whatever its version. Else pages may get through where a long answer does not.
      const isRefused = isReason(error, 'BadRequest', 'Invalid')
      streaming = isRefused ? 'no' : 'not now'
      return isRefused ? await list() : report({ kind: 'list-failed', error: classify(error) }, error)
    } finally {
      clearTimeout(overdue)
      clearTimeout(silence)
      signal.removeEventListener('abort', stop)
    }
  }

  let failure: { error: unknown } | undefined
  const report = (input: ListWatchInput, error: unknown): ListWatchInput => {
    failure = { error }
    return input
  }

  let action: 'list' | 'watch' = 'list'
  while (!signal.aborted) {
    failure = undefined
    if (action === 'list' && streaming === 'yes' && !(await canStreamLists(client, signal))) streaming = 'not now'
    const input: ListWatchInput = action === 'list' && streaming !== 'yes' ? await list() : await watch()
    if (signal.aborted) return
    // Nothing can be asked any more, and trying for ever would keep the process alive.
    if ((failure as { error: unknown } | undefined)?.error instanceof ClientClosedError) return
    const next = decideListWatch(state, input, backoff, random())
    state = next.state
    action = next.action
    if (failure) notify(options, (failure as { error: unknown }).error, next.delayMs)
    if (next.delayMs > 0) await clock.sleep(next.delayMs, signal)
  }
}

/** Sorts an error by what it means for the version we hold. */
function classify(error: unknown): ListWatchError {
  if (error instanceof GarbageError) return { kind: 'garbage' }
  if (!(error instanceof StatusError)) return { kind: 'broken' }
  if (error.code === 410) return { kind: 'gone' }
  const seconds = error.details?.retryAfterSeconds
  // A refused watch (403, 404 after the CRD went, 500) keeps its version: when it is allowed again, it resumes or gets 410.
  return { kind: 'refused', retryAfterMs: seconds === undefined ? undefined : seconds * 1_000 }
}

function notify<Body>(options: ListWatchOptions<Body>, error: unknown, delayMs: number): void {
  try {
    options.onError?.(error, delayMs)
  } catch {
    // A reporter that throws must not end the watch: invariant 6 outranks a log line.
  }
}
