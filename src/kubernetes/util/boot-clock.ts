import { uptime } from 'node:os'

/** /proc/uptime has hundredths of a second, cut off. */
const stepMs = 10

/**
 * A clock that includes the time in which the machine was suspended, for deadlines after which another machine takes over: CLOCK_BOOTTIME in
 * milliseconds on Linux, the monotonic clock elsewhere (Node's own clocks stop during a suspend).
 *
 * `os.uptime()` reads /proc/uptime. Without a free file descriptor it falls back to whole seconds, up to a second less than before, and a file system
 * such as lxcfs may show anything there for a while. A clock that goes back would revive an expired Lease (invariant 2), so only the largest
 * difference to the monotonic clock counts: this clock never goes back and is never slower than the monotonic one. The difference is counted in the
 * steps of /proc/uptime, so that all processes of a machine agree. After a false jump ahead, a suspend that is shorter than the jump is not noticed.
 */
export function bootClockMs(
  uptimeMs: () => number = () => uptime() * 1_000,
  monotonicMs: () => number = () => Number(process.hrtime.bigint()) / 1e6,
  isLinux: boolean = process.platform === 'linux',
): () => number {
  if (!isLinux) return monotonicMs
  let suspendedMs = Number.NEGATIVE_INFINITY
  return () => {
    // In this order: a pause between the two must not look like a suspend.
    const bootMs = uptimeMs()
    const nowMs = monotonicMs()
    suspendedMs = Math.max(suspendedMs, Math.ceil((bootMs - nowMs) / stepMs) * stepMs)
    return nowMs + suspendedMs
  }
}
