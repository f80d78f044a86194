/** Why a Run is stopped before its engine ended by itself. */
export type StopCause =
  /** A person asked for it with `spec.cancel`. */
  | { kind: 'Canceled' }
  | { kind: 'Timeout'; timeout: string }
  /** It used more than spec.resources allows. The engine was killed. */
  | { kind: 'OutOfMemory'; used: number; limit: number; raise: string | undefined }
  /** The kernel killed it although it was within its limit: the machine had no memory left. */
  | { kind: 'MachineOutOfMemory'; used: number }
  | { kind: 'TooManyProcesses'; used: number; limit: number }
  | { kind: 'DiskLimit'; used: number; limit: number }
  /** The worker was told to go, and the grace time is over. */
  | { kind: 'WorkerDrained' }
  /** The Lease could not be renewed in time (invariant 2). */
  | { kind: 'LeaseLost' }
  /** No supervisor could be kept running. */
  | { kind: 'SupervisorLost' }
  /** The state store takes nothing more of this Run, since somebody else holds the lock now. */
  | { kind: 'StateRefused'; detail: string }
  /** The Run is not ours any more: lost, deleted, ended by somebody, or a newer Run has begun (invariant 3). Nothing is written. */
  | { kind: 'OwnershipLost'; detail: string }

/** Carried by the AbortSignal of a Run. */
export class StopError extends Error {
  override readonly name = 'StopError'
  override readonly cause: StopCause

  constructor(cause: StopCause) {
    super(`the run is stopped: ${cause.kind}`)
    this.cause = cause
  }
}

/** True when nothing may be written about the Run any more: not its status, not its lock. */
export const forbidsWrites = (cause: StopCause | undefined): boolean => cause?.kind === 'OwnershipLost'
