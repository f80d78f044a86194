import type { Run } from '../../api/index.ts'

/** A live worker accepts a Run within moments. A Run that is not accepted for this long is reported. */
export const acceptWithinMs = 30_000

/**
 * Reports whether a live worker has failed to accept a Run in time. The Run is only reported, not moved: a person has to inspect the worker.
 * @param run a Run that is assigned to a worker.
 */
export function isAcceptanceOverdue(run: Run, nowMs: number): boolean {
  return isUnaccepted(run) && assignedForMs(run, nowMs) >= acceptWithinMs
}

/** Reports whether the worker of an assigned Run has not started it yet. */
export function isUnaccepted({ status }: Pick<Run, 'status'>): boolean {
  return status === undefined || status.phase === 'Queued' || status.phase === 'Assigned'
}

/** Time since the Run was assigned; Infinity if `spec.assignedAt` is missing. */
export function assignedForMs({ spec }: Run, nowMs: number): number {
  return spec.assignedAt === undefined ? Infinity : nowMs - Date.parse(spec.assignedAt)
}
