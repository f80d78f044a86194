import type { DrainReason } from './decide-step.ts'

/** What has fenced a worker. */
export type WorkerFence = {
  /** Its Lease was deleted or replaced. */
  isLeaseLost: boolean
  /** No supervisor enforces its deadline. */
  isSupervisorLost: boolean
  /** Why no Run could be started, if no supervisor responds; undefined otherwise. */
  supervisorError: Error | undefined
  /** The API server rejected the last renewal: the credential was revoked or has expired. */
  isCredentialRejected: boolean
  /** An error of an execution that is a bug; undefined: none. */
  crash: unknown
}

/** Reports whether the worker may not continue, whatever remains of its Lease. */
export function isFenced({ isLeaseLost, isSupervisorLost, supervisorError, crash }: Readonly<WorkerFence>): boolean {
  return isLeaseLost || isSupervisorLost || supervisorError !== undefined || crash !== undefined
}

export type WorkerEndInput = {
  /** Undefined: the worker is not fenced. One without a reason in it is fenced because its Lease has expired. */
  readonly fence: Readonly<WorkerFence> | undefined
  /** Undefined: it does not drain. */
  readonly drainReason: DrainReason | undefined
  readonly slots: number
  /** Runs that it has started. */
  readonly runs: number
}

export type WorkerEnd = {
  readonly reason:
    | DrainReason
    | 'OneShotCompleted'
    | 'LeaseDeleted'
    | 'LeaseExpired'
    | 'CredentialRejected'
    | 'SupervisorLost'
    | 'SupervisorUnavailable'
    | 'UnexpectedError'
  /** For the log: what happened, and what to do if a user did not expect it. */
  readonly message: string
}

/** Why a worker process ends. A worker that neither drains nor is fenced ends because its lifecycle is OneShot. */
export function describeEnd({ fence, drainReason, slots, runs }: WorkerEndInput): WorkerEnd {
  if (fence) return fencedEnd(fence)
  if (drainReason !== undefined) return { reason: drainReason, message: drainMessages[drainReason] }
  const ended = runs === 1 ? 'its Run has ended' : `its ${runs} Runs have ended`
  const limit = slots === 1 ? 'one Run' : `at most ${slots} Runs, one per slot`
  return {
    reason: 'OneShotCompleted',
    message: `${ended}, and with lifecycle OneShot it executes ${limit}; spec.lifecycle: Warm of the pool lets workers execute Runs one after another`,
  }
}

function fencedEnd({ crash, supervisorError, isSupervisorLost, isCredentialRejected, isLeaseLost }: Readonly<WorkerFence>): WorkerEnd {
  if (crash !== undefined) return { reason: 'UnexpectedError', message: 'an unexpected error occurred' }
  if (supervisorError) return { reason: 'SupervisorUnavailable', message: supervisorError.message }
  if (isSupervisorLost) return { reason: 'SupervisorLost', message: 'its supervisor process cannot be kept running' }
  if (isCredentialRejected)
    return {
      reason: 'CredentialRejected',
      message: 'the API server rejects its credential, which was revoked or has expired; join again with a new token',
    }
  if (isLeaseLost) return { reason: 'LeaseDeleted', message: 'its Lease was deleted or replaced: it was declared lost' }
  return { reason: 'LeaseExpired', message: 'its Lease has expired: it could not be renewed in time' }
}

const drainMessages: Readonly<Record<DrainReason, string>> = {
  DrainRequested: 'it was drained: spec.drain of its Worker was set, by a user or by its pool, or its Worker was deleted',
  Signal: 'it was stopped by a signal',
  Idle: 'it had no Run for its idle timeout',
  RunLimitReached: 'it has executed the number of Runs after which its pool replaces a worker (spec.recycle.afterRuns)',
  MemoryLimitReached: 'its memory exceeds the limit of its pool (spec.recycle.aboveMemory)',
  Fenced: 'one of its Runs was deleted, or assigned to another worker',
}
