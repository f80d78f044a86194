/**
 * @module worker/supervisor: what stands beside a worker and holds its deadline when it cannot (invariant 2). Start reading at `supervisor-main.ts`
 * and `supervised.ts`; `supervisor.ts` is the worker's side, `reaper.ts` what is left when both are killed.
 * In: renewals, process groups, digests of saved state. Out: engines that are gone in time, their last state saved, nothing left behind.
 * A door of its own, light: the supervisor's process loads only this.
 * Not here: when an engine has to end (`decide-fence.ts`), and what a Run is.
 */
export { bootMs } from './clock.ts'
export { type SupervisedRun, SupervisorClient, type SupervisorClientOptions } from './supervisor-client.ts'
export type { SalvageTarget, SupervisedRunSpec, SupervisorMessage, SupervisorReply, WorkerIdentity } from './supervisor-protocol.ts'
