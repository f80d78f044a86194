/**
 * @module dispatch/pool: how many workers each pool should have, and starting and draining them.
 * In: the number of startable Runs of each pool (from `queue/`), the worker inventory (from `placement/`), WorkerPools. Out: workers to start and to
 * drain, the status of WorkerPools.
 * Start reading at `decide-pools.ts`. Deciders: `start-state.ts` (backoff), `warm-minimum.ts` (schedules), `decide-orphans.ts` (processes without a
 * Worker). Shells: `pool-controller.ts`, with `worker-starter.ts` and `pool-status-writer.ts`, acts through one {@link PoolDriver} per mode;
 * `pods/` is the driver of mode Pod, the driver of mode Process is in `app/`.
 * Not done here: which Worker gets which Run (`placement/`).
 */
export {
  decidePoolSize,
  decidePools,
  idleTimeoutMs,
  type PoolDemand,
  type PoolSize,
  type PoolSizeInput,
  type PoolStatusCounts,
  type PoolsDecision,
  type PoolsInput,
  type ScaleReason,
} from './decide-pools.ts'
export { PodPool, type PodWorkerOptions } from './pods/index.ts'
export { PoolController } from './pool-controller.ts'
export { type DriverListener, type DriverWorker, type PoolDriver, StartError } from './pool-driver.ts'
export {
  currentFailure,
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
export { workerEnvironment } from './worker-environment.ts'
