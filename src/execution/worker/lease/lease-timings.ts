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

export const defaultLeaseTimings: LeaseTimings = {
  durationMs: defaults.leaseDurationMs,
  renewMs: 2_000,
  interruptMs: 6_000,
  terminateMs: 7_500,
  killMs: 9_000,
}

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
