import { defaults } from '../../../api/index.ts'

/** Times of a Lease, in milliseconds since before the last successful renewal was sent (by `bootMs`, invariant 2). */
export type LeaseTimings = {
  /** When an observer may call the Lease expired. Default: 10,000. */
  durationMs: number
  /** How often to renew. Default: 2,000. */
  renewMs: number
  /** When the engine gets SIGINT. Default: 6,000. */
  interruptMs: number
  /** When it gets SIGTERM. Default: 7,500. */
  terminateMs: number
  /** When it gets SIGKILL, and nothing may be written any more. Default: 9,000. */
  killMs: number
}

/** The timings of a Lease of this duration: an engine has the same time to stop, at the end of it. */
export const leaseTimingsOf = (durationMs: number): LeaseTimings => ({
  durationMs,
  renewMs: 2_000,
  interruptMs: durationMs - 4_000,
  terminateMs: durationMs - 2_500,
  killMs: durationMs - 1_000,
})

export const defaultLeaseTimings: LeaseTimings = leaseTimingsOf(defaults.leaseDurationMs)

/**
 * Checks that the steps are in order and end before the Lease does.
 * @throws {RangeError} naming the times.
 */
export function checkLeaseTimings(timings: LeaseTimings): LeaseTimings {
  const steps = [0, timings.renewMs, timings.interruptMs, timings.terminateMs, timings.killMs, timings.durationMs]
  if (!steps.every((step, index) => index === 0 || step > steps[index - 1]!)) {
    throw new RangeError(
      `lease timings must rise: 0 < renewMs < interruptMs < terminateMs < killMs < durationMs, got ${steps.slice(1).join(', ')}`,
    )
  }
  return timings
}
