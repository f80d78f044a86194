import type { WorkerStatus } from '../../../api/index.ts'
import type { ExitFailure } from './pool-driver.ts'
import type { StartFailure } from './start-state.ts'

/** What the controller writes into the status of a Worker that does not start, or has ended. Null removes a field. */
export type WorkerReport = {
  readonly phase: WorkerStatus['phase']
  readonly reason: string | null
  readonly message: string | null
  readonly exitCode?: number
}

const maxMessage = 1_000

/** The Worker of a Pod that ended before it registered, or cannot be created. */
export function failedStatus(failure: ExitFailure, exitCode: number | undefined): WorkerReport {
  return withCause(failure, failure.reason ?? null, exitCode)
}

/** The Worker of a Pod that ended after it registered: its start has not failed. */
export function lostStatus(failure: ExitFailure, exitCode: number | undefined): WorkerReport {
  return withCause(failure, 'WorkerLost', exitCode)
}

function withCause({ message, crash, loss }: ExitFailure, otherwise: string | null, exitCode: number | undefined): WorkerReport {
  const reason = loss?.reason ?? crash?.reason ?? otherwise
  return { phase: 'Failed', reason, message: message.slice(0, maxMessage), ...(exitCode !== undefined && { exitCode }) }
}

/** The Worker of a Pod that is not running yet; with what prevents it at the moment. */
export function pendingStatus(failure: StartFailure | undefined): WorkerReport {
  return { phase: 'Pending', reason: failure?.reason ?? null, message: failure?.message.slice(0, maxMessage) ?? null }
}
