import type { CrashReason, WorkerPool } from '../../../api/index.ts'
import type { PodPlace } from '../queue/index.ts'
import type { StartFailure } from './start-state.ts'

/** A worker that a driver started and that has not ended, registered or not. */
export type DriverWorker = {
  readonly name: string
  readonly pool: string
  /** Start time, if another process started it. */
  readonly startedMs?: number
  /** Why its start is failing at the moment; it may still succeed. */
  readonly failure?: StartFailure | undefined
  /** As in the spec of its Worker. */
  readonly trustDomain?: string | undefined
  /** True: it is not the driver's to stop, because it is being stopped, or has registered and is known by its Worker from now on. */
  readonly isReleased?: boolean
}

/** Why a worker ended through no fault of its Runs: its Pod was evicted, preempted by another or deleted, or its node is gone. */
export type LossReason = 'Evicted' | 'Preempted' | 'NodeLost' | 'PodDeleted'

/** Why a worker ended. Without a reason the exit code decides. */
export type ExitFailure = {
  readonly reason?: StartFailure['reason'] | undefined
  readonly message: string
  /** It crashed (`crashOf`): if it executed exactly one Run, that Run is the probable cause. */
  readonly crash?: { readonly reason: CrashReason; readonly message: string } | undefined
  /** All processes that it started have ended too: it is lost without waiting for its Lease (invariant 4). */
  readonly isGone?: boolean | undefined
  /** All its Runs end for this reason. */
  readonly loss?: { readonly reason: LossReason; readonly message: string } | undefined
}

/** A worker that has ended, as `DriverListener.exited` reports it. */
export type WorkerExit = { readonly worker: string; readonly exitCode: number | undefined; readonly failure?: ExitFailure | undefined }

/** For which queued Run a worker is started. */
export type WorkerPurpose = {
  /** `namespace/name` */
  readonly run: string
  /** The only one whose Runs it will get; undefined: that of its first Run, or any. */
  readonly trustDomain: string | undefined
  readonly pod: PodPlace | undefined
}

export type DriverListener = {
  /** A worker has ended. `exitCode` is undefined if it was killed or evicted; `failure` is more specific than the exit code. */
  exited(worker: string, exitCode: number | undefined, failure?: ExitFailure): void
  /** A worker that this process may not have started exists, or its start fails, or no longer fails. */
  observed(worker: DriverWorker): void
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

/**
 * Starts and stops the workers of pools of one mode. `Process` is implemented by `app/process-pool/` for processes of this host and by
 * `requested-pool.ts` for those of other hosts, `Pod` by `pods/pod-pool.ts`.
 */
export type PoolDriver = {
  /**
   * True: a worker is an object on the API server, so its name is claimed before it is created, and a controller that is no longer the leader never
   * creates one twice. Default: false, the worker is a child process with a random name.
   */
  readonly claimsNames?: boolean
  /** Starts a worker that will register as `workerName`. Rejects if that fails, preferably with a {@link StartError}. */
  start(pool: WorkerPool, workerName: string, purpose?: WorkerPurpose): Promise<void>
  /** The workers that have not ended. Those that this process starts itself, and those that exist when it becomes the leader, are not reported otherwise. */
  running(): readonly DriverWorker[]
  /** The workers that have ended and whose end is still known: an earlier leader may not have reported it. Default: none. */
  ended?(): readonly WorkerExit[]
  /** Asks a worker to stop; `force` kills it. Does nothing if it has ended. */
  stop(workerName: string, options: { force: boolean }): void
  /**
   * Deletes what ended workers leave. Returns the milliseconds until it is due again, undefined if it is not. The core does not decide it: it knows
   * workers that have not ended, and what an ended one leaves differs by mode and affects no other decision. Each driver has a pure decider for it
   * (`decide-request-garbage.ts`, `pods/decide-worker-pods.ts`).
   */
  collectGarbage?(nowMs: number): number | undefined
  /** Sets the only listener; called before the first start. */
  listen(listener: DriverListener): void
}
