/**
 * @module dispatch: assigns Runs to Workers, sizes pools, and declares workers lost.
 * In: queued Runs, Workers, their Leases as observed, WorkerPools, Tenants. Out: Runs with `spec.workerName`, workers to start or drain, Lost Runs.
 * Start reading at `dispatch-core.ts`: events go in (`dispatch-event.ts`), actions come out (`dispatch-action.ts`). It is composed of `queue/` (order of
 * Runs), `placement/` (which Worker gets which Run), `pool-autoscaler.ts` and `pool/` (starting and draining workers), `failure-detection/` (lost workers),
 * `run-cleanup.ts` (canceling and ending Runs) and `status/` (what people read). All of that is pure: times and randomness are arguments, and Leases are judged by a
 * monotonic clock only (invariant 2). `shell/` is all I/O: it feeds the core from the caches and executes what it decides.
 * `testdata/` plays the same core on virtual time, and so does `controllers/simulate/`.
 * Not done here: which Run a Stack needs (`controllers/stack/`), starting processes (`app/`, passed in), executing Runs (`execution/`).
 */

export type { DispatchAction, DispatchDecision } from './dispatch-action.ts'
export { DispatchCore, type DispatchCoreOptions } from './dispatch-core.ts'
export type { DispatchEvent, Now } from './dispatch-event.ts'
export { type Assignment, Scheduler, sample, sampleSize, starvedAfterMs, starvedEvery, WorkerInventory } from './placement/index.ts'
export {
  crashOf,
  type DriverListener,
  type DriverWorker,
  decideOrphans,
  decidePoolSize,
  type ExitFailure,
  idleTimeoutMs,
  initialStartState,
  type OrphanSince,
  type PodWorkerOptions,
  type PoolDriver,
  type PoolSize,
  type PoolSizeInput,
  type PoolStatusCounts,
  StartError,
  type StartFailure,
  type StartState,
  workerEnvironment,
} from './pool/index.ts'
export {
  countStartable,
  previewQueueOrder,
  RunQueue,
  type RunQueueOptions,
  type RunRequest,
  requestOf,
  type TenantAccount,
  TenantIndex,
  UsageScale,
} from './queue/index.ts'
export {
  addDispatchController,
  boundedLabelValues,
  type Dispatch,
  type DispatchOptions,
  type ReadPendingOperations,
  SharedView,
  type SharedViewOptions,
  type SharedWorkersOptions,
} from './shell/index.ts'
export {
  maxReportedRuns,
  PendingReasons,
  type QueuedRun,
  type QueueReport,
  type QueueReportOptions,
} from './status/index.ts'
export { type WorkerLoad, type WorkerLoads, withRun } from './worker-load.ts'
