import type { Client } from '../client/index.ts'
import type { KubeObject } from '../object/index.ts'
import type { Log } from '../util/log.ts'

/** What a reconcile asks for: nothing, or to be called again after a while; `priority` is the key's place in the queue then (default 0, higher first). */
// biome-ignore lint/suspicious/noConfusingVoidType: a reconcile function without a return is the common case
export type Result = { requeueAfterMs?: number | undefined; priority?: number | undefined } | void

/** What a reconcile is called with. */
export type ReconcileRequest<Body = unknown> = {
  /** `namespace/name`, or `name` for a cluster-scoped kind. */
  readonly key: string
  readonly namespace: string | undefined
  readonly name: string
  /**
   * The object of the key as the cache has it when this is first looked at, frozen; undefined if there is none (any more).
   * `structuredClone` it to change it.
   */
  readonly object: KubeObject<Body> | undefined
  /**
   * For reads and writes at the API server of this key's cluster. What it writes is in the manager's caches as soon as the
   * write is answered, so the next reconcile of the key sees it; answers of writes are frozen, as caches share them.
   */
  readonly client: Client
  /** Which of the manager's clusters the key is of; undefined for a controller without `clusters`. */
  readonly cluster: string | undefined
  /** Aborts when the process must stop now, leadership is lost, or the reconcile's time is over: pass it on and return soon. */
  readonly signal: AbortSignal
  /** Adds controller, key, cluster and reconcile id to each line. */
  readonly log: Log
  /** 0 for the first try, then how often it failed in a row. */
  readonly attempt: number
  /** A UUID of this attempt: the same in log lines and in its trace span. */
  readonly reconcileId: string
}

export type Reconcile<Body = unknown> = (request: ReconcileRequest<Body>) => Promise<Result>

/**
 * Thrown by a reconcile when trying again cannot help: it is counted and logged, and waits for the next change. One that
 * is the `cause` of another error counts as well.
 */
export class TerminalError extends Error {
  override readonly name: string = 'TerminalError'
}

/** What becomes of a key after its reconcile. */
export type Outcome =
  | { kind: 'forget' }
  | { kind: 'requeue'; delayMs: number; priority: number | undefined }
  | { kind: 'retry' }
  | { kind: 'give-up' }

/** Decides it from what was returned or thrown. @throws nothing: a nonsense result is an error of the reconcile. */
export function decideOutcome(settled: { result: unknown } | { error: Error }): { outcome: Outcome; error: Error | undefined } {
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
  // Bounded: a chain of causes may lead back to itself.
  for (let depth = 0; depth < 8 && current instanceof Error; depth++) {
    if (current instanceof TerminalError) return true
    current = current.cause
  }
  return false
}

/**
 * Whether what was thrown is a bug rather than a failure, as a panic is in Go: the errors of the language itself, and
 * values that are no errors. Counted apart, since more tries will not help and a person should look.
 */
export function isPanic(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return true
  return thrown instanceof TypeError || thrown instanceof ReferenceError || thrown instanceof RangeError || thrown instanceof SyntaxError
}
