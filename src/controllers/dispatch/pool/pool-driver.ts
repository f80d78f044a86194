import type { WorkerPool } from '../../../api/index.ts'
import type { StartFailure } from './start-state.ts'

/** A worker that a driver made and that has not ended, registered or not. */
export type DriverWorker = {
  readonly name: string
  readonly pool: string
  /** When it was started, if it was not by this process. */
  readonly startedMs?: number
  /** What keeps it from coming up. */
  readonly failure?: StartFailure | undefined
}

export type DriverListener = {
  /**
   * A worker has ended. `exitCode` is undefined for one that was killed or taken away; `trouble` says more than the exit code does.
   */
  exited(worker: string, exitCode: number | undefined, failure?: StartFailure): void
  /** Something keeps a worker from coming up; undefined when that has passed. */
  startFailing(worker: string, failure: StartFailure | undefined): void
}

/** A start that failed for a reason that has a name. */
export class StartError extends Error {
  override readonly name = 'StartError'
  readonly failure: StartFailure

  constructor(failure: StartFailure, options?: ErrorOptions) {
    super(failure.message, options)
    this.failure = failure
  }
}

/** Makes and ends the workers of pools of one mode: `Process` is the hub's, which starts child processes; `Pod` is `pod-pool.ts`. */
export type PoolDriver = {
  /** Starts a worker that will register under `workerName`. Rejects, best with a {@link StartError}, when it cannot even be started. */
  start(pool: WorkerPool, workerName: string): Promise<void>
  running(): readonly DriverWorker[]
  /** Asks a worker to go that nobody knows what to do with; `force` makes it. Nothing for one that is gone. */
  stop(workerName: string, options: { force: boolean }): void
  /** Clears away what ended workers leave. Returns after how many milliseconds there is more to do. */
  collectGarbage?(nowMs: number): number | undefined
  /** The one who wants to know; asked for before the first start. */
  listen(listener: DriverListener): void
}
