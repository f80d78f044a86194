/**
 * place: which Worker gets which queued Run, and what the others wait for. `decide-placement.ts` decides, with `hands.ts` for what
 * the Workers have to do, `choose-worker.ts` for the Worker and `wait-reason.ts` for what is said; `placer.ts` writes `spec.workerName` at the
 * version that was decided on, so that a Run is given away once; `teller.ts` writes what waiting Runs are told.
 */

export { Binder } from './binder.ts'
export { type Candidate, chooseWorker, failureDomainLabel, sample, sampleSize } from './choose-worker.ts'
export { type Assignment, decidePlacement, type PlacementInput, SchedulerState, starvedAfterMs, starvedEvery } from './decide-placement.ts'
export { type Engines, unmetRequirement } from './match-worker.ts'
export { type PendingReason, type PendingReasonCode, PendingReasons } from './pending-reason.ts'
export { QueuePositionReporter } from './queue-position-reporter.ts'
export { type PoolWorkerCounts, WorkerInventory } from './worker-inventory.ts'
