/**
 * @module worker: registers a worker, executes the Runs assigned to it, and reports them. Start reading at `run-worker.ts`, then
 * `run/execute-run.ts`.
 * In: Runs whose spec.workerName is this worker. Out: Run.status, state versions with the Run's epoch, log lines, the Secret of outputs.
 * `run/` executes one Run; `lease/` registers the worker and renews its Lease; `supervisor/` is a process that enforces its deadlines;
 * `hollow/` simulates many workers for load tests.
 * The worker stops its engines before any observer may declare it lost (invariant 2): `lease/decide-fence.ts` decides when, and the
 * supervisor enforces it if the worker cannot. When a Run ends, its processes have exited and its directory is removed (invariants 1, 9, 10).
 * Not here: which Run is executed by which worker, and when (`controllers/`); how an engine works (`engine/`).
 */
import type { Stack } from '../../api/index.ts'
import type { WarmCacheOptions, WarmResult } from './warm-cache.ts'

export type { WorkerHealth } from './decide-health.ts'
export { workerExitCodes } from './exit-codes.ts'
export type { HollowFleet, HollowProfile, HollowStackLoad, Latencies } from './hollow/index.ts'
export { defaultLeaseTimings, type LeaseTimings } from './lease/lease-timings.ts'
export type { OpenRunAccess, RunAccess } from './run/run-access.ts'
export type { RunLog } from './run/run-log.ts'
export { StoreConnections } from './run/store-connections.ts'
export { runWorker } from './run-worker.ts'
export type { RunWorkerOptions } from './run-worker-options.ts'
export { sandboxBindsError } from './sandbox-binds.ts'
export { workerSignals } from './signals.ts'
export { countUnsavedStates, SupervisorUnavailableError } from './supervisor/index.ts'
export type { WarmCacheOptions, WarmResult } from './warm-cache.ts'
export type { WarmSource, WarmStack } from './warm-run.ts'
export { capabilitiesFromEnv, engineVersions, type WorkerCapabilities } from './worker-capabilities.ts'
export { defaultWorkerDirectory, prepareWorkerDirectories } from './worker-directories.ts'
export { WorkerOptionError } from './worker-option-error.ts'
export { type PodSettings, type WorkerOverrides, type WorkerSettings, workerOptionsFromEnv } from './worker-options.ts'
export type { RunSelection } from './worker-watches.ts'

/** Loaded on demand: a worker does not need it. */
export const warmCache = async (options: WarmCacheOptions): Promise<WarmResult> => (await import('./warm-cache.ts')).warmCache(options)
export const secretsToWarm = async (stack: Stack): Promise<string[]> => (await import('./warm-run.ts')).secretsToWarm(stack)

/** Hollow workers, to measure the capacity of a server. Loaded on demand: a real worker does not need them. */
export const hollowWorkers = () => import('./hollow/index.ts')
