import { type KubeObject, type Resource, StatusError, type WatchEvent } from '../kube/index.ts'
import type { Backoff } from './backoff.ts'
import type { Client } from './client.ts'
import { type Clock, systemClock } from './clock.ts'
import { ClientClosedError } from './connection-error.ts'
import { decideListWatch, initialListWatchState, type ListWatchError, type ListWatchInput } from './decide-list-watch.ts'
import { GarbageError } from './watch-lines.ts'

export type ListWatchOptions<Body> = {
  /** Default: all namespaces. */
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  /** Ends it; nothing else does. */
  signal: AbortSignal
  /** Everything there is, as of `resourceVersion`: after the first list, and after each one that a 410 made necessary. */
  onReplace(items: KubeObject<Body>[], resourceVersion: string): void
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
  backoff?: Backoff
  /** How long one watch lasts before it is renewed; default 300,000, spread by a third so that watches do not renew together. */
  watchTimeoutMs?: number
  /** How long a watch may say nothing before it is taken for dead; default `watchTimeoutMs` and 10 s. */
  idleTimeoutMs?: number
  /** Objects per page of a list; default 500. */
  pageSize?: number
  clock?: Clock
  random?: () => number
}

/**
 * Keeps a reader up to date with one kind for as long as `signal` allows: lists, watches from there, resumes from the
 * last version after a break, lists again after 410. Every break backs off, none ends it but the end of its client. Resolves
 * after the abort; an error thrown by a callback counts as a break and is reported to `onError`.
 */
export async function listWatch<Body>(client: Client, resource: Resource<Body>, options: ListWatchOptions<Body>): Promise<void> {
  const { signal, clock = systemClock, random = Math.random, backoff = { minMs: 800, maxMs: 30_000 } } = options
  const { namespace, labelSelector, fieldSelector, watchTimeoutMs = 300_000, pageSize } = options
  const handle = client.resource(resource)
  const selection = { namespace, labelSelector, fieldSelector }
  let state = initialListWatchState

  const list = async (): Promise<ListWatchInput> => {
    try {
      const { items, metadata } = await handle.listAll({ ...selection, limit: pageSize, signal })
      if (signal.aborted) return { kind: 'listed', resourceVersion: metadata.resourceVersion }
      options.onReplace(items, metadata.resourceVersion)
      return { kind: 'listed', resourceVersion: metadata.resourceVersion }
    } catch (error) {
      return report({ kind: 'list-failed', error: classify(error) }, error)
    }
  }

  const watch = async (): Promise<ListWatchInput> => {
    const startedMs = clock.nowMs()
    const lastsMs = watchTimeoutMs * (1 - random() / 3)
    const idleTimeoutMs = options.idleTimeoutMs ?? watchTimeoutMs + 10_000
    let events = 0
    // Two bounds on silence: no byte for idleTimeoutMs, and a server (or proxy) that ignores timeoutSeconds and only sends heartbeats.
    const bound = new AbortController()
    const stop = () => bound.abort()
    signal.addEventListener('abort', stop, { once: true })
    const overdue = setTimeout(stop, lastsMs + 10_000)
    try {
      const advance = (resourceVersion: string) => {
        events++
        // As decideListWatch answers 'advanced', which is asked once per event and needs no delay.
        state = { resourceVersion, failures: 0 }
      }
      const stream = handle.watchLines({
        ...selection,
        resourceVersion: state.resourceVersion,
        allowWatchBookmarks: true,
        timeoutSeconds: Math.max(1, Math.round(lastsMs / 1_000)),
        idleTimeoutMs,
        signal: bound.signal,
      })
      for await (const lines of stream) {
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
      return { kind: 'watch-ended', durationMs: clock.nowMs() - startedMs, events }
    } catch (error) {
      return report({ kind: 'watch-failed', error: classify(error), events }, error)
    } finally {
      clearTimeout(overdue)
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
    const input: ListWatchInput = action === 'list' ? await list() : await watch()
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
export function classify(error: unknown): ListWatchError {
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
