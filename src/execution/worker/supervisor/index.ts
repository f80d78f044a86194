/**
 * @module worker/supervisor: a process that enforces a worker's deadlines when the worker cannot (invariant 2). Start reading at
 * `supervision.ts`, which decides (with `decide-deadline.ts`), and at its transcripts in `testdata/`; `supervised-worker.ts` executes that. On the
 * worker's side `supervisor-session.ts` decides and `supervisor-client.ts` executes. `reaper.ts` kills what remains if both are killed.
 * In: renewals, process groups, digests of saved state. Out: engines that were stopped in time, their last state saved, no leftovers.
 * Not here: when an engine must stop (`../lease/decide-fence.ts`), how a Run is executed (`../run/`).
 * The supervisor's process loads only this folder and single files of other modules, because its memory counts on every host.
 */
export { bootMs } from './clock.ts'
export { type SupervisedRun, SupervisorClient, type SupervisorClientOptions } from './supervisor-client.ts'
export type { SalvageTarget, SupervisedRunSpec, SupervisorMessage, SupervisorReply, WorkerIdentity } from './supervisor-protocol.ts'
export { SupervisorUnavailableError } from './supervisor-unavailable-error.ts'
export { countUnsavedStates } from './unsaved-states.ts'
