import { decideFence, type FenceStep, type FenceTimings, interruptSlackMs } from '../lease/decide-fence.ts'

export type DeadlineInputs = {
  readonly nowMs: number
  /** Before this time the last successful renewal was sent. All times are by `bootMs`. */
  readonly renewedAtMs: number
  /** The Run must have ended by then; undefined: it has no such time. */
  readonly endsByMs: number | undefined
  /** The last signal that the engine got, from its worker or from the supervisor. */
  readonly sent: FenceStep
  readonly times: FenceTimings
}

/**
 * Decides which signal the supervisor sends to a Run's engine now, and in how many milliseconds to decide again (invariant 2).
 * A Run that exceeds its own time is treated as one whose Lease is not renewed: its worker's event loop is blocked, or worse.
 */
export function decideDeadline({ nowMs, renewedAtMs, endsByMs, sent, times }: DeadlineInputs): ReturnType<typeof decideFence> {
  const { interruptMs, terminateMs, killMs } = times
  const overdueMs = endsByMs === undefined ? Number.NEGATIVE_INFINITY : nowMs - endsByMs + interruptMs
  // The worker acts at its own times; the supervisor only if it did not: a second SIGINT would cost the engine its state.
  const later = { interruptMs: interruptMs + interruptSlackMs, terminateMs: terminateMs + interruptSlackMs, killMs }
  return decideFence(Math.max(nowMs - renewedAtMs, overdueMs), sent, later)
}
