import type { Run } from '../../../api/index.ts'

/** Why a Run is stopped before its engine exits on its own. */
export type StopCause =
  /** `spec.cancel` was set, by a user without a reason, or the Run was deleted. */
  | { kind: 'Canceled'; reason?: 'Outdated' | 'StackDeleted' | 'RunDeleted' }
  | { kind: 'Timeout'; timeout: string }
  /** It exceeded `spec.resources.memory`; the engine was killed. `raise`: the limit of the next Run, where it is raised automatically. */
  | { kind: 'OutOfMemory'; used: number; limit: number; raise: string | undefined }
  /** The kernel killed the engine below its own limit, because the machine ran out of memory. */
  | { kind: 'MachineOutOfMemory'; used: number }
  | { kind: 'TooManyProcesses'; used: number; limit: number }
  /** `problem`: why its use cannot be measured. */
  | { kind: 'DiskLimit'; used: number; limit: number; problem?: string }
  /** The worker stops: the grace period of its drain has expired, a second signal has ended it early, or an unexpected error occurred. */
  | { kind: 'WorkerDrained'; because: 'GraceExpired' | 'Interrupted' | 'WorkerFailed' }
  /** The Lease could not be renewed in time (invariant 2). */
  | { kind: 'LeaseLost' }
  /** No supervisor process can be kept running (invariant 2). `detail`: none has responded, and the Run was not started. */
  | { kind: 'SupervisorLost'; detail?: string }
  /** The state store rejects further versions from this Run, because another client holds the lock. */
  | { kind: 'StateRejected'; detail: string }
  /** The Run is no longer this worker's: it is Lost, deleted, ended, reassigned, or a newer Run has started (invariant 3). */
  | { kind: 'OwnershipLost'; detail: string }

/** Why a Run was canceled. */
export function canceledBy({ spec, metadata }: Run): StopCause {
  const { cancelReason } = spec
  const isKnown = cancelReason === 'Outdated' || cancelReason === 'StackDeleted'
  const reason = isKnown ? cancelReason : metadata.deletionTimestamp === undefined ? undefined : 'RunDeleted'
  return { kind: 'Canceled', ...(reason && { reason }) }
}

/** The reason carried by the AbortSignals of a Run. */
export class RunStoppedError extends Error {
  override readonly name = 'RunStoppedError'
  override readonly cause: StopCause

  constructor(cause: StopCause) {
    super(`the run is stopped: ${cause.kind}`)
    this.cause = cause
  }
}

/** True if the Run exceeded a limit: it has failed, even if its program ignored the interrupt and exited with 0. */
export const isExceededLimit = (cause: StopCause | undefined): boolean =>
  cause?.kind === 'DiskLimit' || cause?.kind === 'OutOfMemory' || cause?.kind === 'TooManyProcesses'

/** True if nothing may be written about the Run any more: neither its status nor its lock. */
export const forbidsWrites = (cause: StopCause | undefined): boolean => cause?.kind === 'OwnershipLost'
