import { bootClockMs } from '../../../kubernetes/util/boot-clock.ts'

/**
 * Milliseconds of a clock that continues while the machine is suspended and that all processes of a machine share, within 10 ms: CLOCK_BOOTTIME on
 * Linux. The clocks of Node (`process.hrtime`, `performance.now`) stop during a suspend, while the Lease expires for every observer
 * (invariant 2). On other systems: the monotonic clock.
 */
export const bootMs: () => number = bootClockMs()
