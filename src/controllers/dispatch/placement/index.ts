/**
 * @module dispatch/placement: which Worker gets which queued Run. Pure.
 * In: the queue, Workers, their loads. Out: assignments.
 * Start reading at `scheduler.ts`, which takes Workers from `worker-inventory.ts`, chosen by `choose-worker.ts` among those without an unmet
 * requirement (`match-worker.ts`).
 * Not done here: the order of Runs (`queue/`), starting Workers (`pool/`), writing `spec.workerName` (`shell/`).
 */

export { type Candidate, chooseWorker, failureDomainLabel, sample, sampleSize } from './choose-worker.ts'
export { type Engines, enginesOf, formatMemory, unmetRequirement } from './match-worker.ts'
export { type Assignment, type ScheduleOptions, Scheduler, starvedAfterMs, starvedEvery } from './scheduler.ts'
export { anyTrustDomain, trustDomainToRecord } from './trust-domain.ts'
export { type PoolWorkerCounts, WorkerInventory } from './worker-inventory.ts'
export { decideWorkerView, defaultViewsPerWorker, isPreferredIn, selectorOfView, type WorkerView } from './worker-view.ts'
