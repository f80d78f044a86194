import { assignedFinalizer, formatInterruption, isMutating } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import type { DispatchAction } from './dispatch-action.ts'
import type { ObjectVersion } from './object-version.ts'
import type { RunRecord } from './run-record.ts'
import type { RunTracker } from './run-tracker.ts'
import type { TerminatingRun } from './terminating-runs.ts'

export type RunCleanupInput = {
  readonly runs: Pick<RunTracker, 'toCleanUp' | 'releasable' | 'hasSubject'>
  /** True while a write of the Run is pending: nothing is decided for it. */
  readonly isPending: (run: ObjectVersion) => boolean
  /** How long the Lease of a worker may remain unchanged. */
  readonly leaseDurationOf: (worker: string) => number
  /** The worker in a message, with its Pod if it is one. */
  readonly describeWorker: (worker: string) => string
  readonly nowMs: number
}

/**
 * Decides what has to be done for Runs besides assigning them: ends Runs of lost workers, and Runs that were canceled, or whose subject was deleted,
 * before they were assigned; cancels deleted Runs and those of deleted subjects; removes the finalizer of ended Runs.
 */
export function* decideRunCleanup(input: RunCleanupInput): Generator<DispatchAction> {
  const { runs, isPending } = input
  for (const run of runs.toCleanUp()) {
    const action = isPending(run.object) ? undefined : cleanupOf(run, input)
    if (action) yield action
  }
  for (const run of runs.releasable()) if (!isPending(run.object)) yield release(run)
}

/** For each reason for which a Run has to be cleaned up, the first that applies. */
function cleanupOf(run: RunRecord, { runs, leaseDurationOf, describeWorker, nowMs }: RunCleanupInput): DispatchAction | undefined {
  const { object, worker, subject, lostWith, lossCause } = run
  if (lostWith !== undefined) {
    const name = describeWorker(lostWith)
    const message = `${name} did not renew its Lease for ${leaseDurationOf(lostWith) / 1_000} s and was declared lost`
    return end(run, 'Lost', lossCause?.reason ?? 'WorkerLost', lossCause?.message ?? message, nowMs)
  }
  if (run.isCanceled) {
    return worker === undefined ? end(run, 'Canceled', 'Canceled', 'canceled before it was assigned to a worker', nowMs) : undefined
  }
  if (run.isDeleted && worker !== undefined) return { kind: 'CancelRun', object }
  if (runs.hasSubject(run)) return undefined
  if (!run.isSubjectMissing) return { kind: 'ConfirmSubject', object, subject }
  if (worker !== undefined) return { kind: 'CancelRun', object, reason: 'StackDeleted' }
  return end(run, 'Canceled', `${subject.kind}Deleted`, `${subject.kind} ${subject.name} was deleted`, nowMs)
}

function end(run: RunRecord, phase: 'Canceled' | 'Lost', reason: string, message: string, nowMs: number): DispatchAction {
  const { object, subject, type, requested, pendingOperations } = run
  // The state of Pulumi names what was interrupted; of other engines the worker has reported it.
  const mayBeInterrupted = phase === 'Lost' && isMutating(type) && requested.stack.engine === 'pulumi'
  const isLost = phase === 'Lost' && pendingOperations !== undefined
  const text = isLost ? `${message}; ${formatInterruption(requested.stack.engine, pendingOperations)}` : message
  const status = { phase, reason, message: text, finishedAt: rfc3339(nowMs) }
  return { kind: 'PatchRunStatus', object, status, ...(mayBeInterrupted && { interrupted: subject }) }
}

function release({ object, finalizers }: TerminatingRun): DispatchAction {
  return { kind: 'ReleaseRun', object, finalizers: finalizers.filter(finalizer => finalizer !== assignedFinalizer) }
}
