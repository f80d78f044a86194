/**
 * @module worker/supervisor: a process that enforces a worker's deadlines when the worker cannot (invariant 2). Start reading at
 * `supervisor-main.ts` and `supervised-worker.ts`; `decide-deadline.ts` decides, `supervisor-client.ts` is the worker's side, `reaper.ts`
 * kills what remains if worker and supervisor are both killed.
 * In: renewals, process groups, digests of saved state. Out: engines that were stopped in time, their last state saved, no leftovers.
 * Not here: when an engine must stop (`../lease/decide-fence.ts`), how a Run is executed (`../run/`).
 * The supervisor's process loads only this folder and single files of other modules, because its memory counts on every host.
 */
export { bootMs } from './clock.ts'
export { type SupervisedRun, SupervisorClient, type SupervisorClientOptions } from './supervisor-client.ts'
export type { SalvageTarget, SupervisedRunSpec, SupervisorMessage, SupervisorReply, WorkerIdentity } from './supervisor-protocol.ts'
