import { uptime } from 'node:os'

/**
 * Milliseconds that go on while the machine sleeps and that all processes of a machine share: CLOCK_BOOTTIME on Linux, by way of
 * /proc/uptime, in steps of 10 ms. The clocks that Node offers itself (`process.hrtime`, `performance.now`) stand still in a suspend,
 * during which a Lease runs out for everybody else (invariant 2). Elsewhere than on Linux: the monotonic clock.
 */
export function bootMs(): number {
  return process.platform === 'linux' ? uptime() * 1_000 : Number(process.hrtime.bigint()) / 1e6
}
