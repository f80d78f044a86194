import type { Run } from '../../api/index.ts'

/** A live worker takes a Run within moments; one that leaves it lying for this long is reported. */
export const acceptWithinMs = 30_000

/**
 * True for a Run that a live worker was given and does not take. Nothing is decided about it: somebody has to look at the worker.
 * @param run one with a worker.
 */
export function isAcceptanceOverdue(run: Run, nowMs: number): boolean {
  return isUnaccepted(run) && assignedForMs(run, nowMs) >= acceptWithinMs
}

/** True when nobody has said yet that the Run, which has a worker, was begun. */
export function isUnaccepted({ status }: Pick<Run, 'status'>): boolean {
  return status === undefined || status.phase === 'Queued' || status.phase === 'Assigned'
}

/** How long a Run has had its worker. */
export function assignedForMs({ spec }: Run, nowMs: number): number {
  return spec.assignedAt === undefined ? Infinity : nowMs - Date.parse(spec.assignedAt)
}
