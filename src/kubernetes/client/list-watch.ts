import { isReason, type KubeObject, type Resource, StatusError, type WatchEvent } from '../object/index.ts'
import type { Backoff } from '../util/backoff.ts'
import type { Client } from './client.ts'
import { type Clock, systemClock } from './clock.ts'
import { ClientClosedError } from './connection-error.ts'
import {
  decideListWatch,
  initialListWatchState,
  type ListWatchError,
  type ListWatchInput,
  type ListWatchState,
} from './decide-list-watch.ts'
import { canStreamLists, InitialEvents } from './initial-events.ts'
import { WatchDecodeError } from './line-splitter.ts'
import type { ResourceClient } from './resource-client.ts'
import type { ResourceClientOptions } from './resource-options.ts'

/** A server without `sendInitialEvents` support never ends the list: after this long without a line, pages are requested instead. */
const initialEventsTimeoutMs = 15_000

export type ListWatchOptions<Body> = {
  /** Default: all namespaces. */
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  shardSelector?: string | undefined
  /** Ends the list+watch; nothing else does. */
  signal: AbortSignal
  /** All objects as of `resourceVersion`: after the first list, and after each list that a 410 made necessary. */
  onReplace(items: KubeObject<Body>[], resourceVersion: string): void
  /**
   * Receives a list in chunks, so that a large one is never in memory as a whole. `begin` is called before each attempt. If
   * it returns true, the objects go to `add`, and {@link onReplace} is called with an empty list at the end. After a failed
   * attempt, the next `begin` discards its objects.
   */
  chunks?: { begin(): boolean; add(items: KubeObject<Body>[]): void } | undefined
  /** One event after the list, in order. Includes bookmarks, whose object has only metadata.resourceVersion. */
  onEvent(event: WatchEvent<KubeObject<Body>>): void
  /**
   * Called before a line of the watch is parsed. If the caller already has the object, it returns the resource version, and
   * {@link onEvent} is not called. Parsing is the largest cost of a watch, and a controller's own writes come back on it.
   */
  skipLine?(line: string): string | undefined
  /** The server has accepted a watch that resumes from a version. */
  onWatching?(): void
  /** Reports an error of a list or a watch; the list+watch retries after `retryInMs`. */
  onError?(error: unknown, retryInMs: number, verb: 'list' | 'watch'): void
  /** Starts with a watch from this version instead of a list: the caller has everything up to it. */
  resourceVersion?: string | undefined
  /** Default 800 ms to 30 s. */
  backoff?: Backoff | undefined
  /** How long one watch lasts before it is renewed; default 300,000, minus up to a third at random so that watches do not renew together. */
  watchTimeoutMs?: number | undefined
  /** How long a watch may be silent before its connection is considered broken; default `watchTimeoutMs` plus 10 s. */
  idleTimeoutMs?: number | undefined
  /**
   * Lists over the watch itself (WatchList: `sendInitialEvents`) if the server's version supports it: one request, no pages,
   * and the server reads nothing twice. Default true; falls back to pages if the server rejects it or the watch breaks.
   */
  streamLists?: boolean | undefined
  /** As in {@link ResourceClientOptions}. */
  managedFields?: ResourceClientOptions['managedFields']
  /** Objects per page of a list; default 500. */
  pageSize?: number | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
}

/**
 * Keeps a reader up to date with one kind until `signal` aborts: lists, watches from that version, resumes from the last
 * version after a break, and lists again after 410. Every failure backs off; only closing the client ends it otherwise.
 * Resolves after the abort. An error thrown by a callback counts as a failure and is reported to `onError`.
 */
export async function listWatch<Body>(client: Client, resource: Resource<Body>, options: ListWatchOptions<Body>): Promise<void> {
  await new ListWatch(client, resource, options).run()
}

/** A {@link ListWatchInput}, with the error that caused it. */
type AttemptOutcome = { input: ListWatchInput; failure?: { error: unknown } }

class ListWatch<Body> {
  readonly #client: Client
  readonly #resource: Resource<Body>
  readonly #options: ListWatchOptions<Body>
  readonly #resourceClient: ResourceClient<Body>
  readonly #selection: Pick<ListWatchOptions<Body>, 'namespace' | 'labelSelector' | 'fieldSelector' | 'shardSelector'>
  readonly #clock: Clock
  readonly #random: () => number
  readonly #backoff: Backoff
  readonly #watchTimeoutMs: number
  #state: ListWatchState = initialListWatchState
  /** `paused` until the next successful list; `unsupported` for good. */
  #streaming: 'enabled' | 'paused' | 'unsupported'

  constructor(client: Client, resource: Resource<Body>, options: ListWatchOptions<Body>) {
    const { namespace, labelSelector, fieldSelector, shardSelector } = options
    this.#client = client
    this.#resource = resource
    this.#options = options
    this.#state = { ...initialListWatchState, resourceVersion: options.resourceVersion }
    this.#resourceClient = client.resource(resource, { managedFields: options.managedFields })
    this.#selection = { namespace, labelSelector, fieldSelector, shardSelector }
    this.#clock = options.clock ?? systemClock
    this.#random = options.random ?? Math.random
    this.#backoff = options.backoff ?? { minMs: 800, maxMs: 30_000 }
    this.#watchTimeoutMs = options.watchTimeoutMs ?? 300_000
    this.#streaming = (options.streamLists ?? true) ? 'enabled' : 'unsupported'
  }

  async run(): Promise<void> {
    const { signal } = this.#options
    let action: 'list' | 'watch' = this.#state.resourceVersion === undefined ? 'list' : 'watch'
    while (!signal.aborted) {
      if (action === 'list' && this.#streaming === 'enabled' && !(await canStreamLists(this.#client, signal))) this.#streaming = 'paused'
      const { input, failure } = action === 'list' && this.#streaming !== 'enabled' ? await this.#list() : await this.#watch()
      if (signal.aborted) return
      // No request can succeed, and retrying forever would keep the process alive.
      if (failure?.error instanceof ClientClosedError) return
      const next = decideListWatch(this.#state, input, this.#backoff, this.#random())
      this.#state = next.state
      action = next.action
      if (failure) this.#reportError(failure.error, next.delayMs, input.kind === 'list-failed' ? 'list' : 'watch')
      if (next.delayMs > 0) await this.#clock.sleep(next.delayMs, signal)
    }
  }

  async #list(): Promise<AttemptOutcome> {
    const { signal, pageSize, chunks } = this.#options
    try {
      const isChunked = chunks?.begin() ?? false
      const { items, metadata } = isChunked
        ? await this.#listInChunks()
        : await this.#resourceClient.listAll({ ...this.#selection, limit: pageSize, signal })
      const input = { kind: 'listed', resourceVersion: metadata.resourceVersion } as const
      if (signal.aborted) return { input }
      this.#options.onReplace(items, metadata.resourceVersion)
      // A stream that broke may succeed next time.
      if (this.#streaming === 'paused') this.#streaming = 'enabled'
      return { input }
    } catch (error) {
      return { input: { kind: 'list-failed', error: classify(error) }, failure: { error } }
    }
  }

  async #listInChunks(): Promise<{ items: KubeObject<Body>[]; metadata: { resourceVersion: string } }> {
    const { signal, pageSize = 500, chunks } = this.#options
    const first = await this.#resourceClient.list({ ...this.#selection, limit: pageSize, signal })
    let { metadata } = first
    chunks?.add(first.items)
    for (let token = metadata.continue; token && !signal.aborted; ) {
      let page: typeof first
      try {
        page = await this.#resourceClient.list({ ...this.#selection, limit: pageSize, continue: token, signal })
      } catch (error) {
        if (!isReason(error, 'Expired', 'Gone')) throw error
        // The continue token expired between pages: a single response with all objects is always consistent.
        chunks?.begin()
        page = await this.#resourceClient.list({ ...this.#selection, signal })
        metadata = page.metadata
      }
      chunks?.add(page.items)
      token = page.metadata.continue
    }
    return { items: [], metadata }
  }

  /** Watches from the current version; without one, from the beginning, and the first events are the list. */
  async #watch(): Promise<AttemptOutcome> {
    const { signal, chunks } = this.#options
    let initial = this.#state.resourceVersion === undefined ? new InitialEvents<Body>(chunks) : undefined
    const startedMs = this.#clock.nowMs()
    const durationMs = this.#watchTimeoutMs * (1 - this.#random() / 3)
    const idleTimeoutMs = this.#options.idleTimeoutMs ?? this.#watchTimeoutMs + 10_000
    let events = 0
    // Two bounds: idleTimeoutMs without a byte, and a deadline for a server (or proxy) that ignores timeoutSeconds and sends heartbeats only.
    const abort = new AbortController()
    const stop = () => abort.abort()
    signal.addEventListener('abort', stop, { once: true })
    const deadline = setTimeout(stop, durationMs + 10_000)
    // Only until the list ends: a kind that changes rarely is silent for long after it.
    const initialTimeout = initial && setTimeout(stop, Math.min(idleTimeoutMs, initialEventsTimeoutMs))
    try {
      const advance = (resourceVersion: string) => {
        events++
        // What decideListWatch returns for 'advanced', without its cost per event.
        this.#state = { resourceVersion, failures: 0, expirations: 0 }
      }
      const deliver = (event: WatchEvent<KubeObject<Body>>) => {
        this.#options.onEvent(event)
        advance(event.object.metadata.resourceVersion)
      }
      const stream = this.#resourceClient.watchLines({
        ...this.#selection,
        ...(initial
          ? { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' as const }
          : { resourceVersion: this.#state.resourceVersion }),
        allowWatchBookmarks: true,
        timeoutSeconds: Math.max(1, Math.round(durationMs / 1_000)),
        idleTimeoutMs,
        signal: abort.signal,
        onResponse: initial ? undefined : this.#options.onWatching,
      })
      for await (const lines of stream) {
        if (initial) {
          initialTimeout?.refresh()
          const later = initial.consume(lines, line => this.#resourceClient.parseEvent(line))
          if (initial.resourceVersion === undefined) continue
          if (signal.aborted) break
          clearTimeout(initialTimeout)
          this.#options.onReplace(initial.items, initial.resourceVersion)
          this.#state = { ...this.#state, resourceVersion: initial.resourceVersion }
          initial = undefined
          for (const event of later) deliver(event)
          continue
        }
        // Responses to our own writes that arrived in the same turn of the event loop are processed first: their events can then be skipped.
        if (this.#options.skipLine) await new Promise(resolve => setImmediate(resolve))
        for (const line of lines) {
          if (signal.aborted || abort.signal.aborted) break
          const skippedVersion = this.#options.skipLine?.(line)
          if (skippedVersion !== undefined) advance(skippedVersion)
          else deliver(this.#resourceClient.parseEvent(line))
        }
      }
      if (initial)
        throw new WatchDecodeError(`the watch of ${this.#resource.plural} ended or was silent before the end of its initial list`)
      return { input: { kind: 'watch-ended', durationMs: this.#clock.nowMs() - startedMs, events } }
    } catch (error) {
      if (!initial) return { input: { kind: 'watch-failed', error: classify(error), events }, failure: { error } }
      // 400 and 422: the server does not support it, whatever its version. Otherwise pages may succeed where a long response does not.
      const isUnsupported = isReason(error, 'BadRequest', 'Invalid')
      this.#streaming = isUnsupported ? 'unsupported' : 'paused'
      return isUnsupported ? await this.#list() : { input: { kind: 'list-failed', error: classify(error) }, failure: { error } }
    } finally {
      clearTimeout(deadline)
      clearTimeout(initialTimeout)
      signal.removeEventListener('abort', stop)
    }
  }

  #reportError(error: unknown, retryInMs: number, verb: 'list' | 'watch'): void {
    try {
      this.#options.onError?.(error, retryInMs, verb)
    } catch {
      // An observer that throws must not end the watch: invariant 6 outranks a log line.
    }
  }
}

/** Classifies an error by its consequence for the version we hold. */
function classify(error: unknown): ListWatchError {
  if (error instanceof WatchDecodeError) return { kind: 'malformed' }
  if (!(error instanceof StatusError)) return { kind: 'broken' }
  if (error.code === 410) return { kind: 'expired' }
  const seconds = error.details?.retryAfterSeconds
  // A rejected watch (403, 404 after its CRD was deleted, 500) keeps its version: once allowed again, it resumes or gets 410.
  return { kind: 'rejected', retryAfterMs: seconds === undefined ? undefined : seconds * 1_000 }
}
