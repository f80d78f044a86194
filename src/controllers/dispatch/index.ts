/**
 * @module dispatch: assigns Runs to Workers, sizes pools, and declares workers lost.
 * In: queued Runs, Workers, their Leases as observed, WorkerPools, Tenants. Out: Runs with `spec.workerName`, workers to start or drain, Lost Runs.
 * Start reading at `decide-dispatch.ts`; then `queue/` (order of Runs), `placement/` (which Worker gets which Run), `pool/` (starting and
 * draining workers) and `failure-detection/` (lost workers), each with pure deciders and one thin shell. `dispatcher.ts` composes the four.
 * Not done here: which Run a Stack needs (`controllers/stack/`), starting processes (`app/`, passed in), executing Runs (`execution/`).
 * Deciders take times as arguments; Leases are judged by a monotonic clock only (invariant 2).
 */

export { assignedFinalizer } from './caches.ts'
export { type DispatchDecision, type DispatchInput, decideDispatch } from './decide-dispatch.ts'
export { addDispatchController, type Dispatch, type DispatchOptions } from './dispatch-controller.ts'
export { decideLost, LeaseObserver, type LostDecision, type LostInput, type LostWorker } from './failure-detection/index.ts'
export {
  type Assignment,
  decidePlacement,
  type PendingReasonCode,
  PendingReasons,
  SchedulerState,
  sample,
  sampleSize,
  starvedAfterMs,
  starvedEvery,
  WorkerInventory,
} from './placement/index.ts'
export {
  type DriverListener,
  type DriverWorker,
  decidePoolSize,
  idleTimeoutMs,
  initialStartState,
  type PodWorkerOptions,
  type PoolDriver,
  type PoolSize,
  type PoolSizeInput,
  type PoolStatusCounts,
  StartError,
  type StartFailure,
  type StartState,
  withFailed,
  withRegistered,
  withStarted,
  withTimeouts,
  workerEnvironment,
} from './pool/index.ts'
export {
  countStartable,
  maxReportedRuns,
  previewQueueOrder,
  type QueuedRun,
  type QueueReport,
  type QueueReportOptions,
  RunQueue,
  type RunQueueOptions,
  type RunRequest,
  requestOf,
  type TenantAccount,
  TenantIndex,
  UsageScale,
} from './queue/index.ts'
export { type WorkerLoad, type WorkerLoads, withRun } from './worker-load.ts'
