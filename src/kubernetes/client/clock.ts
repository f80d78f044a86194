import { uptime } from 'node:os'

/** Time as this room needs it: a monotonic reading in milliseconds and a timer. Tests bring a virtual one. */
export type Clock = {
  /** Milliseconds that never step back; only differences mean something. */
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
 * As {@link systemClock}, but it goes on while the machine sleeps (CLOCK_BOOTTIME, in steps of 10 ms): for what others take over when
 * its time is up, who did not sleep. Elsewhere than on Linux the same as {@link systemClock}.
 */
export const bootClock: Clock = process.platform === 'linux' ? { ...systemClock, nowMs: () => uptime() * 1_000 } : systemClock
