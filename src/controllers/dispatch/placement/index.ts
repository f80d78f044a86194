/**
 * @module dispatch/placement: which Worker gets which queued Run, and why the other Runs are pending.
 * In: the queue, Workers, their loads. Out: assignments; `status.reason` and `status.queuePosition` of queued Runs.
 * Start reading at `decide-placement.ts`, which takes Workers from `worker-inventory.ts`, chosen by `choose-worker.ts` among those without an
 * unmet requirement (`match-worker.ts`). `binder.ts` writes `spec.workerName` at the resourceVersion that was decided on, so that a Run is
 * assigned once. `pending-reason.ts` computes why a Run is pending; `queue-position-reporter.ts` writes it.
 * Not done here: the order of Runs (`queue/`), and starting Workers (`pool/`).
 */

export { Binder } from './binder.ts'
export { type Candidate, chooseWorker, failureDomainLabel, sample, sampleSize } from './choose-worker.ts'
export { type Assignment, decidePlacement, type PlacementInput, SchedulerState, starvedAfterMs, starvedEvery } from './decide-placement.ts'
export { type Engines, unmetRequirement } from './match-worker.ts'
export { type PendingReason, type PendingReasonCode, PendingReasons } from './pending-reason.ts'
export { QueuePositionReporter } from './queue-position-reporter.ts'
export { type PoolWorkerCounts, WorkerInventory } from './worker-inventory.ts'
