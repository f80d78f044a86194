/**
 * pool: how many workers each pool should have, and getting there. `decide-pools.ts`, `start-state.ts`, `warm-minimum.ts` and
 * `decide-orphans.ts` decide; `pool-keeper.ts` starts and drains workers through a {@link PoolDriver} per mode and writes the
 * pools' status; `pods/` is the driver of mode Pod.
 * In: how many Runs want a worker of each pool (from `place/`). Not done here: which Worker gets which Run.
 */
export {
  decidePoolSize,
  decidePools,
  idleTimeoutMs,
  type PoolCounts,
  type PoolDemand,
  type PoolNumbers,
  type PoolSize,
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
