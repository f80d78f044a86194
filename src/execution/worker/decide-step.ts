/** Why a worker takes no new Run any more; it stands in its status. */
export type DrainReason = 'Drained' | 'Signal' | 'Idle' | 'RunsDone' | 'MemoryHigh' | 'Fenced'

export type WorkerView = {
  readonly lifecycle: 'OneShot' | 'Warm'
  readonly slots: number
  /** Runs that it ever began, that it works on now, and that were given to it and are not begun. */
  readonly begun: number
  readonly running: number
  readonly given: number
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
export type WorkerStep = { readonly kind: 'take' | 'wait' | 'end' | 'endFenced' } | { readonly kind: 'drain'; readonly reason: DrainReason }

/** What a worker does next. */
export function decideStep(view: WorkerView): WorkerStep {
  const { lifecycle, slots, begun, running, given, isDraining, isFenced } = view
  if (isFenced) return { kind: running === 0 ? 'endFenced' : 'wait' }
  // A Run keeps its worker for life: one that was given before the worker said that it drains is nobody else's.
  const mayTake = running < slots && (lifecycle === 'Warm' || begun < slots)
  if (given > 0 && mayTake) return { kind: 'take' }
  if (isDraining) return { kind: running === 0 ? 'end' : 'wait' }
  if (lifecycle === 'OneShot') {
    if (begun > 0 && running === 0) return { kind: 'end' }
  } else {
    if (begun >= view.recycleAfterRuns) return { kind: 'drain', reason: 'RunsDone' }
    // Looked at between Runs: what an engine needs is its own, and ends with it.
    if (begun > 0 && running < slots && view.memoryBytes > view.recycleAboveBytes) return { kind: 'drain', reason: 'MemoryHigh' }
  }
  if (running === 0 && view.idleMs >= view.idleTimeoutMs) return { kind: 'drain', reason: 'Idle' }
  return { kind: 'wait' }
}
