import type { AllInOne, AllInOneOptions } from './all-in-one.ts'
import type { WorkerProcessOptions } from './worker-process.ts'

// Each process loads only its own modules: a worker is started for every Run, and must not wait for those of the server.

/**
 * Starts API server, stores, controllers and status page in this process. Workers are its child processes.
 * @throws {AppStartError} if the data directory or an address cannot be used.
 */
export async function startAllInOne(options: AllInOneOptions): Promise<AllInOne> {
  return await (await import('./all-in-one.ts')).startAllInOne(options)
}

/** Functions that create, list and revoke join tokens. */
export const joinTokens = async () => await import('./join/index.ts')

/** Runs a worker with the settings of its environment until it has finished or a signal ends it. Returns the exit code. */
export async function runWorkerProcess(options: WorkerProcessOptions): Promise<number> {
  return await (await import('./worker-process.ts')).runWorkerProcess(options)
}
