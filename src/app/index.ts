/**
 * @module app: composes modules into processes. Start reading at `all-in-one.ts`; the worker's process is `worker-process.ts`.
 * In: a data directory, addresses, limits. Out: a running control plane, or an error with its cause and a remedy.
 * This module decides who may do what (`authorize.ts`, `authorize-joined.ts`, `store-access.ts`), how workers on other machines join
 * (`join/`), how worker processes are started (`process-pool.ts`), and the order of startup and shutdown.
 * Out of scope: any decision about Stacks, Runs or Workers.
 */

export { type Address, parseAddress } from './address.ts'
export type { AllInOne, AllInOneOptions } from './all-in-one.ts'
export { AppStartError, type AppStartErrorKind } from './app-start-error.ts'
export { openLogFile } from './log-file.ts'
export { joinTokens, runWorkerProcess, startAllInOne } from './processes.ts'
export type { WorkerProcessOptions } from './worker-process.ts'
