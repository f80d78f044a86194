import type { WorkerPool } from '../../../api/index.ts'
import type { StartFailure } from './start-state.ts'

/** A worker that a driver started and that has not ended, registered or not. */
export type DriverWorker = {
  readonly name: string
  readonly pool: string
  /** Start time, if another process started it. */
  readonly startedMs?: number
  /** Why its start is failing at the moment; it may still succeed. */
  readonly failure?: StartFailure | undefined
}

export type DriverListener = {
  /** A worker has ended. `exitCode` is undefined if it was killed or evicted; `failure` is more specific than the exit code. */
  exited(worker: string, exitCode: number | undefined, failure?: StartFailure): void
  /** The start of a worker is failing, but may still succeed; undefined when it no longer fails. */
  startFailing(worker: string, failure: StartFailure | undefined): void
}

/** A failed start with a specific reason. */
export class StartError extends Error {
  override readonly name = 'StartError'
  readonly failure: StartFailure

  constructor(failure: StartFailure, options?: ErrorOptions) {
    super(failure.message, options)
    this.failure = failure
  }
}

/** Starts and stops the workers of pools of one mode: `Process` is implemented by `app/process-pool.ts`, `Pod` by `pods/pod-pool.ts`. */
export type PoolDriver = {
  /** Starts a worker that will register as `workerName`. Rejects if that fails, preferably with a {@link StartError}. */
  start(pool: WorkerPool, workerName: string): Promise<void>
  running(): readonly DriverWorker[]
  /** Asks a worker to stop; `force` kills it. Does nothing if it has ended. */
  stop(workerName: string, options: { force: boolean }): void
  /** Deletes what ended workers leave. Returns the milliseconds until it is due again, undefined if it is not. */
  collectGarbage?(nowMs: number): number | undefined
  /** Sets the only listener; called before the first start. */
  listen(listener: DriverListener): void
}
