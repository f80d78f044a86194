import type { RunStatus } from '../../../api/index.ts'
import { StatusError } from '../../../kubernetes/object/index.ts'
import { LockedError, StateClientError } from '../../../stores/state/index.ts'
import { formatBytes, SourceError, SpawnError } from '../../workspace/index.ts'
import { InputError } from './input-error.ts'
import { OutputsError } from './outputs.ts'
import type { StopCause } from './stop-cause.ts'

/** How a Run that did not succeed ends. */
export type Failure = Pick<RunStatus, 'reason' | 'message' | 'retryable'> & { phase: 'Failed' | 'Canceled' }

/** What a status may hold of a message. */
const maxMessageCharacters = 4_000

/** The end of a Run that was stopped. `during` is what the engine had to say about it. */
export function failureOfStop(cause: StopCause, during: string | undefined): Failure {
  const said = during ? `: ${during}` : ''
  switch (cause.kind) {
    case 'Canceled':
      return { phase: 'Canceled', reason: 'Canceled', message: `canceled on request${said}`, retryable: false }
    case 'Timeout':
      return failed('Timeout', `took longer than spec.timeout, which is ${cause.timeout}${said}`, true)
    case 'OutOfMemory':
      return failed('OutOfMemory', formatOutOfMemory(cause), cause.raise !== undefined)
    case 'MachineOutOfMemory':
      return failed(
        'OutOfMemory',
        `the kernel ended it because the machine had no memory left; its own peak was ${formatBytes(cause.used)}; set spec.resources.memory on what runs here, or allow fewer Runs at once`,
        true,
      )
    case 'TooManyProcesses':
      return failed(
        'TooManyProcesses',
        `had ${cause.used} processes at once, and spec.resources.pids is ${cause.limit}; raise it, or find what starts so many`,
        false,
      )
    case 'DiskLimit':
      return failed(
        'DiskLimit',
        `its directory held ${formatBytes(cause.used)}, and spec.resources.disk is ${formatBytes(cause.limit)}; raise it, or write less`,
        false,
      )
    case 'WorkerDrained':
      return failed('WorkerDrained', `the worker was told to stop and the grace time was over${said}`, true)
    case 'LeaseLost':
      return failed('LeaseLost', `the worker could not renew its Lease in time and stopped the engine${said}`, true)
    case 'SupervisorLost':
      return failed('SupervisorLost', `the worker's supervisor process could not be kept running, so the engine was stopped${said}`, true)
    case 'StateRefused':
      return failed('StateRefused', `the state store refused a version, so the engine was stopped: ${cause.detail}${said}`, true)
    case 'OwnershipLost':
      return failed('OwnershipLost', `the Run is not this worker's: ${cause.detail}`, false)
  }
}

/** The advice is a limit that would have been enough for what was seen, with half as much again: the peak is where it was stopped. */
function formatOutOfMemory({ used, limit, raise }: Extract<StopCause, { kind: 'OutOfMemory' }>): string {
  const said = `needed more memory than spec.resources.memory allows: peak ${formatBytes(used)}, limit ${formatBytes(limit)}`
  if (raise) return `${said}; the next try gets ${raise} (spec.resources.autoRaise)`
  return `${said}; raise spec.resources.memory to ${formatBytes(Math.max(used, limit) * 1.5)} or more, or set spec.resources.autoRaise.memory`
}

/** The end of a Run whose work failed with `error`. Messages name field, value and remedy; they are masked by the caller. */
export function failureOf(error: unknown): Failure {
  if (error instanceof LockedError) {
    return failed('StateLocked', `${error.message}; the next try finds it free when its holder let go`, true)
  }
  if (error instanceof StateClientError) return failed('StateUnavailable', `the state store could not be used: ${error.message}`, true)
  if (error instanceof SpawnError) return failed(error.reason, error.message, error.reason === 'SpawnFailed')
  if (error instanceof SourceError || error instanceof InputError || error instanceof OutputsError) {
    return failed(error.reason, error.message, error.retryable)
  }
  if (error instanceof StatusError) return failed('RequestRefused', `${error.message} (${error.reason})`, true)
  if (isEngineError(error)) return failed(error.reason, error.message, error.retryable)
  return failed('InternalError', `${(error as Error)?.message ?? error}`, true)
}

/** Known by its shape: engines are loaded only when a Run needs one. */
function isEngineError(error: unknown): error is Error & { reason: string; retryable: boolean } {
  return error instanceof Error && error.name === 'EngineError'
}

function failed(reason: string, message: string, retryable: boolean): Failure {
  return { phase: 'Failed', reason, message, retryable }
}

/** Cuts a message to what a status may hold. Mask it first: half a secret is no longer recognised as one. */
export function truncateMessage(text: string): string {
  return text.length > maxMessageCharacters ? `${text.slice(0, maxMessageCharacters)}…` : text
}
