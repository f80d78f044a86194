import { forbidsWrites, type StopCause } from './stop-cause.ts'

export type StopDecision = {
  /** The cause that the Run's status reports. */
  readonly cause: StopCause
  /** Interrupt the engine now. True at most once for a Run: a second SIGINT makes terraform drop unsaved state. */
  readonly interrupt: boolean
  /** Write nothing more about the Run, and escalate from SIGINT to SIGTERM and SIGKILL. */
  readonly forbidWrites: boolean
}

/**
 * Decides what a further reason to stop a Run changes. The first cause is reported, unless the Run is no longer this worker's:
 * that overrides every other cause, because nothing may be written then.
 */
export function decideStop(current: StopCause | undefined, next: StopCause): StopDecision {
  const isFirst = current === undefined
  const forbidWrites = forbidsWrites(next)
  return { cause: isFirst || forbidWrites ? next : current, interrupt: isFirst, forbidWrites }
}
