import type { Run } from './run.ts'

/** `status.reason` of a Run in phase Lost that its worker has not started, because it had no free slot. */
export const workerBusyReason = 'WorkerBusy'

/**
 * True for a Run that its worker has rejected: another dispatcher had used its last slot. Nothing of it was executed. A Run keeps its worker, so its
 * subject gets another one.
 */
export const isRejected = ({ status }: Pick<Run, 'status'>): boolean => status?.phase === 'Lost' && status.reason === workerBusyReason
