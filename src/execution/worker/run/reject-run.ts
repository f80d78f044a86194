import { clearedPendingStatus, type Run, workerBusyReason } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import { RunReporter } from './run-reporter.ts'
import { RunStoppedError } from './stop-cause.ts'

export type RejectRunOptions = {
  readonly client: Client
  readonly run: Run
  readonly workerName: string
  readonly slots: number
  /** False once another process may declare this worker lost (invariant 2). */
  mayWrite(): boolean
}

/**
 * Ends a Run for which the worker has no free slot, before anything of it was executed. Resolves when that is written, or the Run is no longer this
 * worker's to end: it was deleted, has ended, or the worker counts as lost.
 */
export async function rejectRun({ client, run, workerName, slots, mayWrite }: RejectRunOptions): Promise<void> {
  const reporter = new RunReporter({ client, run, workerName, mayWrite })
  const message = `worker ${workerName} had no free slot of ${slots}: nothing was executed, and another Run follows immediately`
  try {
    await reporter.reportPhase({
      ...clearedPendingStatus,
      phase: 'Lost',
      reason: workerBusyReason,
      message,
      finishedAt: rfc3339(Date.now()),
    })
  } catch (error) {
    if (!(error instanceof RunStoppedError)) throw error
  } finally {
    reporter.close()
  }
}
