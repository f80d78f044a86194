/**
 * @module worker: one pair of hands: takes a Run, does it, reports it. Start reading at `run-worker.ts`, then `execute-run.ts`.
 * In: a Run whose spec.workerName is this worker. Out: Run.status, state versions with the Run's epoch, log lines, the Secret of outputs.
 * The worker stops its engine before anyone may call it dead (invariant 2): `decide-fence.ts` says when, `supervisor-main.ts` keeps that
 * deadline in a process of its own. Everything it started is gone, and its directory removed, when a Run ends (invariants 1, 9, 10).
 * Not here: which Run, on which worker, and when (`stack/`, `dispatch/`); how an engine works (`engine/`).
 */
export type { WorkerHealth } from './decide-health.ts'
export { workerExitCodes } from './exit-codes.ts'
export type { HollowFleet, HollowProfile, Latencies, StackLoad } from './hollow/index.ts'
export { defaultLeaseTimings, type LeaseTimings } from './lease/lease-timings.ts'
export type { RunLog } from './run/run-log.ts'
export { type RunWorkerOptions, runWorker, type WorkerLog } from './run-worker.ts'
export { workerSignals } from './signals.ts'
export { engineVersions, type WorkerCapabilities } from './worker-capabilities.ts'
export { WorkerOptionError } from './worker-option-error.ts'
export { type WorkerOverrides, type WorkerSettings, workerOptionsFromEnv } from './worker-options.ts'

/** Hollow workers, for trying how much a server holds; loaded by who asks, as a real worker has no use for them. */
export const hollowWorkers = () => import('./hollow/index.ts')
