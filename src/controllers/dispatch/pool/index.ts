/**
 * @module dispatch/pool: how many workers each pool should have, and starting and draining them.
 * In: the number of startable Runs of each pool (from `queue/`), the counts of its workers, WorkerPools, reports of drivers. Out: workers to start and to
 * drain, and processes to stop.
 * Start reading at `decide-pools.ts`. Also pure: `start-state.ts` (backoff) and `start-tracker.ts`, which keeps it for all pools; `warm-minimum.ts`
 * (schedules); `worker-crash.ts` (which ends are crashes); `decide-orphans.ts` (processes without a Worker); `decide-request-garbage.ts` (requests for workers that failed or that no host claims).
 * {@link PoolDriver} is what starts and stops workers: `pods/` is the driver of mode Pod. Mode Process has two: `requested-pool.ts` has other hosts
 * start workers, the one in `app/` starts child processes.
 * Not done here: which Worker gets which Run (`placement/`), and calling the drivers (`shell/`).
 */
export { decideOrphans, type OrphanSince } from './decide-orphans.ts'
export {
  decidePoolSize,
  decidePools,
  idleSinceMs,
  idleTimeoutMs,
  type PoolDemand,
  type PoolSize,
  type PoolSizeInput,
  type PoolStatusCounts,
  type PoolsDecision,
  type PoolsInput,
  type ScaleReason,
} from './decide-pools.ts'
export { EndedWorkers } from './ended-workers.ts'
export { type PlannedWorkers, planWorkers } from './plan-workers.ts'
export { addDisruptionController, PodPool, type PodWorkerOptions } from './pods/index.ts'
export {
  type DriverListener,
  type DriverWorker,
  type ExitFailure,
  type LossReason,
  type PoolDriver,
  StartError,
  type WorkerExit,
  type WorkerPurpose,
} from './pool-driver.ts'
export { RequestedPool } from './requested-pool.ts'
export {
  currentFailure,
  domainFailure,
  failingDomains,
  initialStartState,
  type StartFailure,
  type StartFailureReason,
  type StartState,
  withFailed,
  withProven,
  withRegistered,
  withStarted,
  withStartFailing,
  withTimeouts,
} from './start-state.ts'
export { type StartPlan, StartTracker } from './start-tracker.ts'
export { crashOf } from './worker-crash.ts'
export { workerEnvironment } from './worker-environment.ts'
export { lostStatus, type WorkerReport } from './worker-report.ts'
