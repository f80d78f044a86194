import type { Log } from './log.ts'

/** What a reconcile asks for: nothing, or to be called again after a while; `priority` is the key's place in the queue then (default 0, higher first). */
// biome-ignore lint/suspicious/noConfusingVoidType: a reconcile function without a return is the common case
export type Result = { requeueAfterMs?: number; priority?: number } | void

/** What a reconcile is called with. */
export type ReconcileRequest = {
  /** `namespace/name`, or `name` for a cluster-scoped kind. */
  readonly key: string
  readonly namespace: string | undefined
  readonly name: string
  /** Aborts when the process must stop now, leadership is lost, or the reconcile's time is over: pass it on and return soon. */
  readonly signal: AbortSignal
  /** Adds controller and key to each line. */
  readonly log: Log
  /** 0 for the first try, then how often it failed in a row. */
  readonly attempt: number
}

export type Reconcile = (request: ReconcileRequest) => Promise<Result>

/** Thrown by a reconcile when trying again cannot help: it is counted and logged, and waits for the next change. */
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
    return { outcome: error instanceof TerminalError ? { kind: 'give-up' } : { kind: 'retry' }, error }
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
