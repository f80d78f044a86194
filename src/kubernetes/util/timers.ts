/** Time for queues: a monotonic reading and callbacks. Tests bring virtual ones. */
export type Timers = {
  nowMs(): number
  /** Calls `run` once after `delayMs`; returns how to cancel that. */
  after(delayMs: number, run: () => void): () => void
}

/** What `setTimeout` can count (24.8 days); above it fires at once. Whoever waits longer is woken early and waits again. */
const longestTimerMs = 2_147_483_647

export const systemTimers: Timers = {
  nowMs: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, Math.min(delayMs, longestTimerMs))
    return () => clearTimeout(timer)
  },
}
