/** A monotonic clock with callbacks. Tests pass a virtual one. */
export type Timers = {
  nowMs(): number
  /** Calls `run` once after `delayMs`; returns a function that cancels it. Delays above 24.8 days may fire early. */
  after(delayMs: number, run: () => void): () => void
}

/** The upper limit of `setTimeout` (24.8 days); above it a timer would fire immediately. Callers check the time and set the timer again. */
const longestTimerMs = 2_147_483_647

export const systemTimers: Timers = {
  nowMs: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, Math.min(delayMs, longestTimerMs))
    return () => clearTimeout(timer)
  },
}
