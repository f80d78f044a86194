import type { RunRecord } from './run-record.ts'

/** A live worker accepts a Run within moments. A Run that is not accepted for this long is reported. */
export const acceptWithinMs = 30_000

type Assigned = Pick<RunRecord, 'phase' | 'assignedAtMs'>

/**
 * Reports whether a live worker has failed to accept a Run in time. The Run is only reported, not moved: a person has to inspect the worker.
 * @param run a Run that is assigned to a worker.
 */
export function isAcceptanceOverdue(run: Assigned, nowMs: number): boolean {
  return isUnaccepted(run) && assignedForMs(run, nowMs) >= acceptWithinMs
}

/** Reports whether the worker of an assigned Run has not started it yet. */
export function isUnaccepted({ phase }: Pick<RunRecord, 'phase'>): boolean {
  return phase === 'Queued' || phase === 'Assigned'
}

/** Time since the Run was assigned; Infinity if `spec.assignedAt` is missing. */
export function assignedForMs({ assignedAtMs }: Pick<RunRecord, 'assignedAtMs'>, nowMs: number): number {
  return assignedAtMs === undefined ? Number.POSITIVE_INFINITY : nowMs - assignedAtMs
}
