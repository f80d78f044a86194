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

/** The Worker of a Pod that has ended, or cannot be created. */
export function failedStatus({ reason, message, crash, loss }: ExitFailure, exitCode: number | undefined): WorkerReport {
  const cause = loss?.reason ?? crash?.reason ?? reason ?? null
  return { phase: 'Failed', reason: cause, message: message.slice(0, maxMessage), ...(exitCode !== undefined && { exitCode }) }
}

/** The Worker of a Pod that is not running yet; with what prevents it at the moment. */
export function pendingStatus(failure: StartFailure | undefined): WorkerReport {
  return { phase: 'Pending', reason: failure?.reason ?? null, message: failure?.message.slice(0, maxMessage) ?? null }
}
