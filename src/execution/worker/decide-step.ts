/** Why a worker starts no further Run; reported in its status. */
export type DrainReason = 'DrainRequested' | 'Signal' | 'Idle' | 'RunLimitReached' | 'MemoryLimitReached' | 'Fenced'

export type WorkerState = {
  readonly lifecycle: 'OneShot' | 'Warm'
  readonly slots: number
  /** Runs that it has started so far, that it executes now, and that are assigned to it and not started. */
  readonly started: number
  readonly running: number
  readonly assigned: number
  readonly isDraining: boolean
  /** Another process may declare this worker lost, or no supervisor enforces its deadline (invariant 2). */
  readonly isFenced: boolean
  /** How long it has had no Run, and after how long it exits for that. Infinity: never. */
  readonly idleMs: number
  readonly idleTimeoutMs: number
  readonly recycleAfterRuns: number
  readonly memoryBytes: number
  readonly recycleAboveBytes: number
}

/** `drain` is reported before the next decision; `exit` is decided only while no Run is running. */
export type WorkerStep =
  | { readonly kind: 'start' | 'wait' | 'exit' | 'exitFenced' }
  | { readonly kind: 'drain'; readonly reason: DrainReason }

/** Decides what a worker does next. */
export function decideStep(state: WorkerState): WorkerStep {
  const { lifecycle, slots, started, running, assigned, isDraining, isFenced } = state
  if (isFenced) return { kind: running === 0 ? 'exitFenced' : 'wait' }
  // A Run is never reassigned: one that was assigned before the worker reported its drain has no other worker.
  const hasFreeSlot = running < slots && (lifecycle === 'Warm' || started < slots)
  if (assigned > 0 && hasFreeSlot) return { kind: 'start' }
  if (isDraining) return { kind: running === 0 ? 'exit' : 'wait' }
  if (lifecycle === 'OneShot') {
    if (started > 0 && running === 0) return { kind: 'exit' }
  } else {
    if (started >= state.recycleAfterRuns) return { kind: 'drain', reason: 'RunLimitReached' }
    // Checked between Runs: the memory of an engine is freed when it exits.
    if (started > 0 && running < slots && state.memoryBytes > state.recycleAboveBytes)
      return { kind: 'drain', reason: 'MemoryLimitReached' }
  }
  if (running === 0 && state.idleMs >= state.idleTimeoutMs) return { kind: 'drain', reason: 'Idle' }
  return { kind: 'wait' }
}
