/** Why a worker takes no new Run any more; it stands in its status. */
export type DrainReason = 'DrainRequested' | 'Signal' | 'Idle' | 'RunLimitReached' | 'MemoryLimitReached' | 'Fenced'

export type WorkerState = {
  readonly lifecycle: 'OneShot' | 'Warm'
  readonly slots: number
  /** Runs that it ever began, that it works on now, and that were given to it and are not begun. */
  readonly started: number
  readonly running: number
  readonly assigned: number
  readonly isDraining: boolean
  /** Somebody may call this worker dead, or nobody keeps the deadline beside it (invariant 2). */
  readonly isFenced: boolean
  /** For how long it has had no Run; and after how long of that it ends by itself. Infinity: never. */
  readonly idleMs: number
  readonly idleTimeoutMs: number
  readonly recycleAfterRuns: number
  readonly memoryBytes: number
  readonly recycleAboveBytes: number
}

/** `drain` is said to everyone first, and asked again then; `end` comes when nothing of it runs. */
export type WorkerStep =
  | { readonly kind: 'start' | 'wait' | 'exit' | 'exitFenced' }
  | { readonly kind: 'drain'; readonly reason: DrainReason }

/** What a worker does next. */
export function decideStep(view: WorkerState): WorkerStep {
  const { lifecycle, slots, started, running, assigned, isDraining, isFenced } = view
  if (isFenced) return { kind: running === 0 ? 'exitFenced' : 'wait' }
  // A Run keeps its worker for life: one that was given before the worker said that it drains is nobody else's.
  const mayTake = running < slots && (lifecycle === 'Warm' || started < slots)
  if (assigned > 0 && mayTake) return { kind: 'start' }
  if (isDraining) return { kind: running === 0 ? 'exit' : 'wait' }
  if (lifecycle === 'OneShot') {
    if (started > 0 && running === 0) return { kind: 'exit' }
  } else {
    if (started >= view.recycleAfterRuns) return { kind: 'drain', reason: 'RunLimitReached' }
    // Looked at between Runs: what an engine needs is its own, and ends with it.
    if (started > 0 && running < slots && view.memoryBytes > view.recycleAboveBytes) return { kind: 'drain', reason: 'MemoryLimitReached' }
  }
  if (running === 0 && view.idleMs >= view.idleTimeoutMs) return { kind: 'drain', reason: 'Idle' }
  return { kind: 'wait' }
}
