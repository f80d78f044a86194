import { clearedPendingStatus } from '../../api/index.ts'
import { acceptWithinMs, assignedForMs, isAcceptanceOverdue } from './acceptance.ts'
import type { DispatchAction, RunStatusPatch } from './dispatch-action.ts'
import type { ObjectVersion } from './object-version.ts'
import type { RunRecord } from './run-record.ts'
import type { RunTracker } from './run-tracker.ts'

/** How often Runs that are assigned and not accepted are checked. */
const acceptanceCheckIntervalMs = 500
/**
 * A Run that is accepted sooner never gets phase Assigned from dispatch: its worker writes the next phase, so that a Run that is placed immediately costs
 * dispatch one write, its assignment. Until then `phaseOf` derives the phase.
 */
const markAssignedAfterMs = 5_000
/** The same for a Run whose status has a reason and a position in the queue, which are no longer true. */
const clearPendingAfterMs = 1_000

export type AcceptanceCheckInput = {
  readonly runs: Pick<RunTracker, 'unaccepted'>
  /** True while a write of the Run is pending: nothing is decided for it. */
  readonly isPending: (run: ObjectVersion) => boolean
  /** False for a worker that was deleted or lost: its Runs end as Lost. */
  readonly isAlive: (worker: string) => boolean
  readonly nowMs: number
}

/** Reports Runs that their worker does not accept, and marks those that it has not accepted soon as Assigned. */
export class AcceptanceCheck {
  #checkedAtMs = Number.NEGATIVE_INFINITY

  /** @returns the actions, and the milliseconds until the next check is due; Infinity if none is. */
  decide({ runs, isPending, isAlive, nowMs }: AcceptanceCheckInput): {
    readonly actions: readonly DispatchAction[]
    readonly requeueAfterMs: number
  } {
    const inMs = this.#checkedAtMs + acceptanceCheckIntervalMs - nowMs
    const unaccepted = runs.unaccepted()
    if (unaccepted.size === 0) return { actions: [], requeueAfterMs: Number.POSITIVE_INFINITY }
    if (inMs > 0 && inMs <= acceptanceCheckIntervalMs) return { actions: [], requeueAfterMs: inMs }
    this.#checkedAtMs = nowMs
    const actions: DispatchAction[] = []
    let nextMs = Number.POSITIVE_INFINITY
    for (const run of unaccepted) {
      if (run.reason === 'NotAccepted' || !isAlive(run.worker ?? '')) continue
      const forMs = assignedForMs(run, nowMs)
      const isOverdue = isAcceptanceOverdue(run, nowMs)
      const markAfterMs = run.reason === undefined ? markAssignedAfterMs : clearPendingAfterMs
      if (!isOverdue) nextMs = Math.min(nextMs, (forMs < markAfterMs ? markAfterMs : acceptWithinMs) - forMs)
      const status = isOverdue ? notAccepted(run) : forMs >= markAfterMs && run.phase !== 'Assigned' ? assigned : undefined
      if (status && !isPending(run.object)) actions.push({ kind: 'PatchRunStatus', object: run.object, status, isWarning: isOverdue })
    }
    return { actions, requeueAfterMs: Math.max(nextMs, acceptanceCheckIntervalMs) }
  }
}

const assigned: RunStatusPatch = { phase: 'Assigned', ...clearedPendingStatus }

function notAccepted({ worker }: RunRecord): RunStatusPatch {
  const message = `worker ${worker} renews its Lease but did not accept this Run within ${acceptWithinMs / 1_000} s; see the worker's log`
  return { phase: 'Assigned', reason: 'NotAccepted', message }
}
