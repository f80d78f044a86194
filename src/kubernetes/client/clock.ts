import { bootClockMs } from '../util/boot-clock.ts'

/** A monotonic clock and a timer. Tests pass a virtual one. */
export type Clock = {
  /** Milliseconds that never decrease; only differences are meaningful. */
  nowMs(): number
  /** Resolves after `ms`, or as soon as `signal` aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      signal?.addEventListener('abort', done)
    }),
}

/**
 * Like {@link systemClock}, but includes the time in which the machine was suspended (CLOCK_BOOTTIME, in steps of 10 ms): for
 * deadlines after which another machine takes over. On platforms other than Linux identical to {@link systemClock}.
 */
export const bootClock: Clock = process.platform === 'linux' ? { ...systemClock, nowMs: bootClockMs() } : systemClock
