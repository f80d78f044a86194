import { join } from 'node:path'
import { packageRoot } from './package-root.ts'

/**
 * Starts with a young generation larger than 1 MB, so that nothing is collected before the engine of a worker starts. The collections
 * took 10 ms of 150 ms. Measured: the worker then uses the same memory.
 */
const workerFlags = ['--min-semi-space-size=8']

/** Program and leading arguments that start a worker of this installation. */
export const workerLauncher: readonly string[] = [process.execPath, ...workerFlags, join(packageRoot, 'bin', 'oarlock.js')]
