/**
 * @module hub: puts the rooms together into processes. Start reading at `all-in-one.ts`; the worker's process is `worker-process.ts`.
 * In: a data directory, addresses, limits. Out: a running control plane, or an error that says what is in the way.
 * Not done here: any decision about Stacks, Runs or Workers. What this room decides is who may do what (`authorize.ts`,
 * `authorize-joined.ts`, `store-access.ts`), how workers of other machines get in (`join/`), how worker processes are started (`process-pool.ts`), and in which order things start and stop.
 */

export { type Address, parseAddress } from './address.ts'
export type { AllInOne, AllInOneOptions } from './all-in-one.ts'
export { AppStartError, type AppStartErrorKind } from './app-start-error.ts'
export { openLogFile } from './log-file.ts'
export { joinTokens, runWorkerProcess, startAllInOne } from './processes.ts'
export type { WorkerProcessOptions } from './worker-process.ts'
