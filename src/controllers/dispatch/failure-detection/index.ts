/**
 * @module dispatch/failure-detection: which workers are lost, and what happens to their Runs (invariant 2).
 * In: Leases as observed, Workers, active Runs. Out: Lost Runs, deleted Leases and Workers; suspects that get no new Runs.
 * Start reading at `decide-lost.ts` (the decision) and `lease-observer.ts` (its clock). `lost-worker-controller.ts` confirms each loss
 * with the server and acts on it; `suspect-workers.ts` excludes workers that are late with a renewal.
 * Not done here: renewing Leases and stopping engines, which is the worker's own duty (`execution/worker/`).
 */
export { decideLost, type LostDecision, type LostInput, type LostWorker } from './decide-lost.ts'
export { LeaseObserver } from './lease-observer.ts'
export { LostWorkerController } from './lost-worker-controller.ts'
export { SuspectWorkers } from './suspect-workers.ts'
