/**
 * @module dispatch: which Worker gets which Run, how many Workers a pool should have, and which are dead.
 * Start reading at `decide-dispatch.ts`; then `queue/` (whose turn it is), `place/` (queue → `Run.spec.workerName`), `pool/`
 * (starting and letting go of workers) and `bury/` (dead workers, Lost Runs), each with deciders and one thin shell; `dispatcher.ts` wires the four.
 * In: queued Runs, Workers, their Leases as observed, WorkerPools. Out: Runs with a Worker, workers to start, Lost Runs.
 * Not done here: which Run a Stack needs (`stack/`), starting processes (`hub/`, passed in), doing Runs (`worker/`).
 * Deciders are pure, with times passed in; Leases are judged by a monotonic clock only (invariant 2).
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
  type PoolCounts,
  type PoolDriver,
  type PoolNumbers,
  type PoolSize,
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
  preview,
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
