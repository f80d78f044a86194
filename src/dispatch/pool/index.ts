/**
 * pool: how many workers each pool should have, and getting there. `decide-pools.ts` and `start-state.ts` decide;
 * `pool-keeper.ts` starts and drains workers through the {@link PoolDriver} of the hub and writes the pools' status.
 * In: how many Runs want a worker of each pool (from `place/`). Not done here: which Worker gets which Run.
 */
export { decidePools, type PoolDemand, type PoolNumbers, type PoolsDecision, type PoolsInput } from './decide-pools.ts'
export type { PoolDriver } from './pool-driver.ts'
export { PoolKeeper } from './pool-keeper.ts'
export { nextTimeoutMs, noStarts, type StartState, withFailed, withRegistered, withStarted, withTimeouts } from './start-state.ts'
