import { isStateError, oarlockCommand, type Run, type RunFailureReason, type RunStatus } from '../../../api/index.ts'
import { StatusError } from '../../../kubernetes/object/index.ts'
import { UnexpectedFileError } from '../../../kubernetes/util/index.ts'
import { SecretsTooLargeError } from '../../../stores/log/index.ts'
import { IncompleteStateError, LockedError, StateClientError } from '../../../stores/state/index.ts'
import type { DependencyError } from '../../dependencies/index.ts'
import type { EngineError } from '../../engine/index.ts'
import { formatMebibytes, SourceError, SpawnError } from '../../workspace/index.ts'
import { AppliedSourceError } from './applied-configuration.ts'
import { InputError } from './input-error.ts'
import { OutputsError } from './outputs.ts'
import type { StopCause } from './stop-cause.ts'
import { UnsavedStateError } from './unsaved-state-error.ts'

/** The result of a Run that did not succeed. */
export type Failure = Pick<RunStatus, 'reason' | 'message' | 'retryable'> & { phase: 'Failed' | 'Canceled' }

/** Longer messages are truncated in the status. */
export const maxMessageChars = 4_000

const canceledBecause = {
  Requested: 'canceled on request',
  Outdated: 'canceled because the Stack or its inputs changed',
  StackDeleted: 'canceled because the Stack is being deleted',
  RunDeleted: 'canceled because the Run is being deleted',
} as const

const drainedBecause = {
  GraceExpired: 'the worker is draining and its grace period expired',
  Interrupted: 'the worker got a second signal to stop',
  WorkerFailed: 'an unexpected error occurred in the worker',
} as const

/** The result of a Run that was stopped. `engineError` is the error that the engine ended with, if any. */
export function failureOfStop(cause: StopCause, engineError: string | undefined): Failure {
  const suffix = engineError ? `: ${engineError}` : ''
  switch (cause.kind) {
    case 'Canceled':
      return {
        phase: 'Canceled',
        reason: 'Canceled',
        message: `${canceledBecause[cause.reason ?? 'Requested']}${suffix}`,
        retryable: false,
      }
    case 'Timeout':
      return failed('Timeout', `did not finish within ${cause.timeout} (spec.timeout)${suffix}`, true)
    case 'OutOfMemory':
      return failed('OutOfMemory', formatOutOfMemory(cause), cause.raise !== undefined)
    case 'MachineOutOfMemory':
      return failed(
        'OutOfMemory',
        `killed by the kernel because the machine ran out of memory (peak of this Run: ${formatMebibytes(cause.used)}); set spec.resources.memory of the Stacks on this worker, or reduce its slots`,
        true,
      )
    case 'TooManyProcesses':
      return failed(
        'TooManyProcesses',
        `started ${cause.used} processes, at most ${cause.limit} are allowed (spec.resources.pids); raise the limit or reduce parallelism`,
        false,
      )
    case 'DiskLimit':
      return failed(
        'DiskLimit',
        cause.problem === undefined
          ? `used ${formatMebibytes(cause.used)} of disk, at most ${formatMebibytes(cause.limit)} are allowed (spec.resources.disk); raise the limit or write less`
          : `the disk usage cannot be measured, which counts as more than ${formatMebibytes(cause.limit)} (spec.resources.disk): ${cause.problem}`,
        false,
      )
    case 'WorkerDrained':
      return failed('WorkerDrained', `interrupted because ${drainedBecause[cause.because]}${suffix}`, true)
    case 'LeaseLost':
      return failed('LeaseLost', `the worker failed to renew its Lease in time and stopped the engine${suffix}`, true)
    case 'SupervisorLost':
      if (cause.detail !== undefined) return failed('SupervisorLost', `not started: ${cause.detail}`, true)
      return failed('SupervisorLost', `the worker failed to keep its supervisor process running and stopped the engine${suffix}`, true)
    case 'StateRejected':
      return failed(
        'StateRejected',
        `the state store rejected a state version and the worker stopped the engine: ${cause.detail}${suffix}`,
        true,
      )
    case 'OwnershipLost':
      return failed('OwnershipLost', `the Run no longer belongs to this worker: ${cause.detail}`, false)
  }
}

/** The message of a Run whose state the worker could not save: from then on its supervisor tries, and the store keeps it as that of a Run that has ended. */
export function withUnsavedNote(message: string | undefined, { metadata, spec }: Run): string {
  const command = oarlockCommand('state versions', { name: spec.stackRef.name, namespace: metadata.namespace })
  return `${message}; its last state becomes an orphaned version when the store accepts it: ${command}`
}

/** The message of a Run whose directory could not be removed, for example because a program has mounted something in it. */
export const withLeftDirectoryNote = (message: string | undefined, { message: reason }: Error): string =>
  `${message}; its directory on the worker could not be removed: ${reason}`

/** Suggests 1.5 times the peak: the engine was stopped there and may need more. */
function formatOutOfMemory({ used, limit, raise }: Extract<StopCause, { kind: 'OutOfMemory' }>): string {
  const exceeded = `exceeded spec.resources.memory: peak ${formatMebibytes(used)}, limit ${formatMebibytes(limit)}`
  if (raise) return `${exceeded}; the next Run gets ${raise} (spec.resources.autoRaise)`
  return `${exceeded}; raise spec.resources.memory to ${formatMebibytes(Math.max(used, limit) * 1.5)} or more, or set spec.resources.autoRaise.memory`
}

/** By the code of the stores: why a Run does not get its inputs, or its outputs cannot be stored. */
const inputFailures = {
  InputsNotAllowed: { reason: 'WorkerInputsNotAllowed', retryable: true },
  InputsTooLarge: { reason: 'InvalidSpec', retryable: false },
  OutputsSecretTaken: { reason: 'OutputsSecretTaken', retryable: false },
  OutputsRejected: { reason: 'RequestRejected', retryable: true },
} as const

/** The result of a Run whose work failed with `error`. The caller masks the message. */
export function failureOf(error: unknown): Failure {
  if (error instanceof UnsavedStateError) return { ...failureOf(error.cause), message: error.message }
  if (error instanceof LockedError) {
    return failed('StateLocked', error.message, true)
  }
  // Retried when a user has decided what happens to the state.
  if (error instanceof StateClientError && isStateError(error.code)) return failed(error.code, error.message, false)
  if (error instanceof StateClientError && error.code in inputFailures) {
    const { reason, retryable } = inputFailures[error.code as keyof typeof inputFailures]
    return failed(reason, error.message, retryable)
  }
  if (error instanceof StateClientError) return failed('StateUnavailable', `the state store is unavailable: ${error.message}`, true)
  if (error instanceof SpawnError) return failed(error.reason, error.message, error.reason === 'SpawnFailed')
  if (error instanceof SourceError || error instanceof AppliedSourceError || error instanceof InputError || error instanceof OutputsError) {
    return failed(error.reason, error.message, error.retryable)
  }
  if (error instanceof StatusError) return failed('RequestRejected', `${error.message} (${error.reason})`, true)
  if (error instanceof UnexpectedFileError) return failed('UnexpectedFile', error.message, false)
  if (error instanceof IncompleteStateError) return failed('UnexpectedFile', error.message, true)
  if (error instanceof SecretsTooLargeError) return failed('InvalidSpec', error.message, false)
  if (isDependencyError(error)) return failed(error.reason, error.message, error.retryable)
  if (isEngineError(error)) return failed(error.reason, error.message, error.retryable)
  return failed('InternalError', `${(error as Error)?.message ?? error}`, true)
}

/** Recognized by its shape: importing the class would load the engines before a Run needs one. */
function isEngineError(error: unknown): error is EngineError {
  return error instanceof Error && error.name === 'EngineError'
}

/** As {@link isEngineError}. */
function isDependencyError(error: unknown): error is DependencyError {
  return error instanceof Error && error.name === 'DependencyError'
}

/** Why a Run ended with its worker: the Stack continues with the next Run immediately. */
type LossReason = 'WorkerDrained' | 'LeaseLost' | 'SupervisorLost'

function failed(reason: RunFailureReason | LossReason, message: string, retryable: boolean): Failure {
  return { phase: 'Failed', reason, message, retryable }
}
