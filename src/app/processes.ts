import type { AllInOne, AllInOneOptions } from './all-in-one.ts'
import type { WorkerProcessOptions } from './worker-process.ts'

// Each process loads only its own part: a worker is started for every Run, and must not wait for the server's modules.

/**
 * Starts everything in this process: API server, stores, controllers, status page; workers are its child processes.
 * @throws {AppStartError} for what a person can put right: data directory, addresses.
 */
export async function startAllInOne(options: AllInOneOptions): Promise<AllInOne> {
  return await (await import('./all-in-one.ts')).startAllInOne(options)
}

/** Join tokens: made, listed, revoked. */
export const joinTokens = async () => await import('./join/index.ts')

/** The worker's process: reads its environment, takes Runs until it is done or a signal says so. Returns the exit code. */
export async function runWorkerProcess(options: WorkerProcessOptions): Promise<number> {
  return await (await import('./worker-process.ts')).runWorkerProcess(options)
}
