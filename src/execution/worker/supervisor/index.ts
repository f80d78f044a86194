/**
 * @module worker/guard: what stands beside a worker and holds its deadline when it cannot (invariant 2). Start reading at `guard-main.ts`
 * and `ward.ts`; `guard.ts` is the worker's side, `reaper.ts` what is left when both are killed.
 * In: renewals, process groups, digests of saved state. Out: engines that are gone in time, their last state saved, nothing left behind.
 * A door of its own, light: the guard's process loads only this.
 * Not here: when an engine has to end (`decide-fence.ts`), and what a Run is.
 */
export { bootMs } from './clock.ts'
export { type GuardOptions, type RunGuard, SupervisorClient } from './supervisor-client.ts'
export type { GuardAnswer, GuardedRun, GuardMessage, SalvageTarget, WorkerIdentity } from './supervisor-protocol.ts'
