/**
 * @module dispatch: which Worker gets which Run, how many Workers a pool should have, and which are dead.
 * Start reading at `decide-dispatch.ts`, then `decide-lost.ts`.
 * In: queued Runs, Workers, their Leases as observed, WorkerPools. Out: Runs with a Worker, workers to start, Lost Runs.
 * Not done here: which Run a Stack needs (`stack/`), starting processes (`hub/`, passed in), doing Runs (`worker/`).
 * Everything but `dispatcher.ts` is pure, with times passed in; Leases are judged by a monotonic clock only (invariant 2).
 */
export {
  type DispatchDecision,
  type DispatchInput,
  decideDispatch,
  type PoolNumbers,
  queueOrder,
  type Waiting,
  type WaitReason,
  type WorkerLoad,
} from './decide-dispatch.ts'
export { type Death, decideLost, type LostDecision, type LostInput, notTaken } from './decide-lost.ts'
export { addDispatchController, type DispatchOptions } from './dispatch-controller.ts'
export { assignedFinalizer } from './dispatcher.ts'
export { LeaseObserver } from './lease-observer.ts'
export type { PoolDriver } from './pool-driver.ts'
export { compareQueued } from './queue-order.ts'
export { nextTimeoutMs, noStarts, type StartState, withFailed, withRegistered, withStarted, withTimeouts } from './start-state.ts'
