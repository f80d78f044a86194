import { uptime } from 'node:os'

/**
 * Milliseconds of a clock that continues while the machine is suspended and that all processes of a machine share: CLOCK_BOOTTIME on Linux,
 * read from /proc/uptime in steps of 10 ms. The clocks of Node (`process.hrtime`, `performance.now`) stop during a suspend, while the Lease
 * expires for every observer (invariant 2). On other systems: the monotonic clock.
 */
export function bootMs(): number {
  return process.platform === 'linux' ? uptime() * 1_000 : Number(process.hrtime.bigint()) / 1e6
}
