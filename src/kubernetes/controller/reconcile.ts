import type { Client } from '../client/index.ts'
import type { KubeObject } from '../object/index.ts'
import type { Log } from '../util/log.ts'

/**
 * Result of a reconcile: nothing, or to be called again after `requeueAfterMs`, then with `priority` in the queue (higher first; default: that
 * with which it was called).
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a reconcile function without a return is the common case
export type Result = { requeueAfterMs?: number | undefined; priority?: number | undefined } | void

/** The right by which a key is reconciled. */
export type ShardOfKey = {
  readonly bucket: number
  /** Higher than that of every earlier owner of the bucket: a sink that has seen a higher one for this UID should refuse the call. Not ordered by name. */
  readonly fence: number
  /** The version of the ring when this process got the bucket. */
  readonly ringVersion: number
  /**
   * Whether a call may be sent at this instant; with `sharded: 'owned'`, false once the bucket label of the object was changed. `request.client`
   * checks it before each write; check it before each call to another system. The signal alone is not enough: when a stopped process continues,
   * its timers have not run yet.
   */
  mayWrite(): boolean
}

/** What a reconcile is called with. */
export type ReconcileRequest<Body = unknown> = {
  /** `namespace/name`, or `name` for a cluster-scoped kind. */
  readonly key: string
  readonly namespace: string | undefined
  readonly name: string
  /**
   * The cached object of the key at the first access, frozen; undefined if it does not exist (any more).
   * `structuredClone` it to modify it.
   */
  readonly object: KubeObject<Body> | undefined
  /**
   * For reads and writes at the API server of this key's cluster. A write is in the manager's caches as soon as it is acknowledged, so
   * the next reconcile of the key sees it. Responses to writes are frozen, because caches share them.
   */
  readonly client: Client
  /** The manager's cluster that the key belongs to; undefined for a controller without `clusters`. */
  readonly cluster: string | undefined
  /** Aborts when the process must stop now, leadership is lost, or `timeoutMs` has expired: pass it on and return soon. */
  readonly signal: AbortSignal
  /** The bucket of the key and its fencing token, in a manager with `shards`; pass `fence` to sinks that can check it. */
  readonly shard?: ShardOfKey | undefined
  /**
   * Whether a call may be sent at this instant: false if the controller needs leadership and this process no longer leads. `request.client` checks it before each
   * write; check it before each call to another system. The signal alone is not enough: when a stopped process continues, its timers have not run yet.
   */
  isLeading(): boolean
  /** Adds controller, key, cluster and reconcile id to each line. */
  readonly log: Log
  /** 0 for the first attempt, then the number of consecutive failures. */
  readonly attempt: number
  /** A UUID of this attempt, the same in log lines and in its trace span. */
  readonly reconcileId: string
}

export type Reconcile<Body = unknown> = (request: ReconcileRequest<Body>) => Promise<Result>

/**
 * Thrown by a reconcile when a retry cannot help: it is counted and logged, and the key waits for its next change. Also recognized as
 * the `cause` of another error.
 */
export class TerminalError extends Error {
  override readonly name: string = 'TerminalError'
}

/** What happens to a key after its reconcile. */
export type ReconcileOutcome =
  | { kind: 'forget' }
  | { kind: 'requeue'; delayMs: number; priority: number | undefined }
  | { kind: 'retry' }
  | { kind: 'give-up' }

/** Decides the outcome from what was returned or thrown. Never throws: an invalid result is an error of the reconcile. */
export function decideOutcome(settled: { result: unknown } | { error: Error }): { outcome: ReconcileOutcome; error: Error | undefined } {
  if ('error' in settled) {
    const { error } = settled
    return { outcome: isTerminal(error) ? { kind: 'give-up' } : { kind: 'retry' }, error }
  }
  const { result } = settled
  if (result === undefined || result === null) return { outcome: { kind: 'forget' }, error: undefined }
  const delayMs = typeof result === 'object' ? (result as { requeueAfterMs?: unknown }).requeueAfterMs : Number.NaN
  if (delayMs === undefined) return { outcome: { kind: 'forget' }, error: undefined }
  const priority = typeof result === 'object' ? (result as { priority?: unknown }).priority : undefined
  if (priority !== undefined && (typeof priority !== 'number' || Number.isNaN(priority))) {
    return {
      outcome: { kind: 'retry' },
      error: new TypeError(`priority of a reconcile's result must be a number, got ${String(priority)}`),
    }
  }
  if (typeof delayMs === 'number' && delayMs >= 0 && Number.isFinite(delayMs))
    return { outcome: { kind: 'requeue', delayMs, priority }, error: undefined }
  const got = typeof result === 'object' ? `requeueAfterMs ${String(delayMs)}` : typeof result
  return {
    outcome: { kind: 'retry' },
    error: new TypeError(`a reconcile must return nothing or { requeueAfterMs: number >= 0 }, got ${got}`),
  }
}

/** Whether `error` is a {@link TerminalError}, or was caused by one. */
export function isTerminal(error: unknown): boolean {
  let current = error
  // Bounded: a chain of causes may be cyclic.
  for (let depth = 0; depth < 8 && current instanceof Error; depth++) {
    if (current instanceof TerminalError) return true
    current = current.cause
  }
  return false
}

/**
 * Whether what was thrown is a bug rather than a failure, like a panic in Go: the language's own errors, and values that are not
 * errors. Counted separately, because retries will not help and someone should investigate.
 */
export function isPanic(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return true
  return thrown instanceof TypeError || thrown instanceof ReferenceError || thrown instanceof RangeError || thrown instanceof SyntaxError
}
