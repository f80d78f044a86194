import { isEnded, isMutating, isRejected, phaseOf, type Run, subjectOf } from '../../api/index.ts'

/** True for a Plan of the destruction of all resources. */
export function isDestroyPlan({ spec }: Pick<Run, 'spec'>): boolean {
  return spec.type === 'Plan' && spec.planMode === 'Destroy'
}

/** True for a Run of a deletion: a Destroy, or the plan of one. A plan of destruction that a user requested may be older than the deletion. */
export function isOfDeletion(run: Pick<Run, 'spec'>): boolean {
  return run.spec.type === 'Destroy' || (isDestroyPlan(run) && run.spec.reason !== 'Requested')
}

/** True for a Run that has targets: it plans and applies only part of the Stack. */
export function isPartial({ spec }: Pick<Run, 'spec'>): boolean {
  return spec.options?.targets !== undefined
}

/**
 * True for a Run that a user requested and that is not part of the Stack's lifecycle: a Refresh, a Run with targets, a Plan of a Stack without
 * manual approval, a Plan with options, or a plan of destruction or of a refresh. Its result is reported, but it is not retried and does not
 * change whether the Stack is Ready.
 */
export function isAdHocRun(run: Pick<Run, 'spec'>): boolean {
  const { type, reason, stack, planMode, options } = run.spec
  if (type === 'Refresh' || isPartial(run)) return true
  const isSpecial = stack.approval !== 'Manual' || planMode !== undefined || options !== undefined
  return type === 'Plan' && reason === 'Requested' && isSpecial
}

/** True for a Run that a newer one replaced before it was assigned to a worker: nothing was attempted. */
export function isSuperseded(run: Pick<Run, 'status'>): boolean {
  return run.status?.phase === 'Canceled' && run.status.reason === 'Superseded'
}

/** True for a Run of which nothing was attempted: a newer one replaced it, or its worker had no free slot. */
export function isUnattempted(run: Pick<Run, 'status'>): boolean {
  return isSuperseded(run) || isRejected(run)
}

/** True for a Run whose result determines the Stack's next Run. */
export function isLifecycleRun(run: Run): boolean {
  return !isAdHocRun(run) && !isUnattempted(run)
}

/** Reasons of Runs that follow from a change of the Stack, its source or its inputs, or from its interval. */
const routineReasons = new Set(['NewGeneration', 'SourceChanged', 'InputsChanged', 'DriftCheck'])

/**
 * True for a Run that happens as often as its Stack changes: not the first one, none that a user requested or approved, and no
 * repetition. Its creation and its success are not reported as Events, because each would be a write, and the conditions of
 * the Stack and the Run itself have the same information.
 */
export function isRoutine({ spec }: Pick<Run, 'spec'>): boolean {
  return spec.epoch > 1 && routineReasons.has(spec.reason)
}

/** True when the Run may have changed resources: its type is mutating, a worker had it, and it did not fail before it applied anything. */
export function mayHaveWritten(run: Run): boolean {
  const isStarted = (run.spec.workerName !== undefined || run.status?.startedAt !== undefined) && !isRejected(run)
  return isMutating(run.spec.type) && isStarted && !failedBeforeApply(run)
}

/** True when the Run may have changed resources; false also for one that its worker canceled before it began to apply. */
export function mayHaveApplied(run: Run): boolean {
  const { phase, reason, plan, stateVersion } = run.status ?? {}
  const isCanceledByWorker = phase === 'Canceled' && reason === 'Canceled'
  return mayHaveWritten(run) && !(isCanceledByWorker && plan === undefined && stateVersion === undefined)
}

/** Only a worker reports Failed, and with it the plan that it began to apply. */
function failedBeforeApply(run: Run): boolean {
  const { phase, plan, stateVersion } = run.status ?? {}
  return phase === 'Failed' && !isLost(run) && plan === undefined && stateVersion === undefined
}

/** True when the Run found something to change. `changed` is checked as well because it covers outputs, which the plan does not count. */
export function hasChanges(run: Run): boolean {
  const { plan, changed } = run.status ?? {}
  return changed === true || (plan !== undefined && plan.add + plan.change + plan.destroy > 0)
}

/** When an ended Run ended; its creation time if `finishedAt` is missing. */
export function endedAtMs(run: Run): number {
  return Date.parse(run.status?.finishedAt ?? run.metadata.creationTimestamp)
}

/** The Runs of the subject with this uid, oldest first. Runs of a deleted Stack of the same name have another one. */
export function ownRuns(runs: readonly Run[], uid: string): Run[] {
  return runs.filter(run => subjectOf(run).uid === uid).sort((a, b) => a.spec.epoch - b.spec.epoch)
}

/** Failure reasons caused by the worker and not by the Stack. */
const workerLossReasons = new Set(['WorkerDrained', 'LeaseLost', 'SupervisorLost'])

/** True for a Run whose worker was stopped, for example because `oarlock up` was, and interrupted it. */
export function isDrained({ status }: Pick<Run, 'status'>): boolean {
  return status?.phase === 'Failed' && status.reason === 'WorkerDrained'
}

/** True for a Run that ended because its worker did, or did not take it. The next Run continues it immediately, and it does not count as a failure of the Stack. */
export function isLost(run: Run): boolean {
  const phase = phaseOf(run)
  return phase === 'Lost' || (phase === 'Failed' && workerLossReasons.has(run.status?.reason ?? ''))
}

/** Number of consecutive lost Runs ({@link isLost}) among the newest ended Runs that satisfy `filter`. */
export function consecutiveLostRuns(runs: readonly Run[], filter: (run: Run) => boolean): number {
  let count = 0
  for (let i = runs.length - 1; i >= 0; i--) {
    const run = runs[i]!
    if (!isEnded(run) || isUnattempted(run) || !filter(run)) continue
    if (!isLost(run)) break
    count++
  }
  return count
}

/** True when the Run did nothing because another holder has the lock of the state: not a failure of the Stack, it waits. */
export function isStateLocked({ status }: Pick<Run, 'status'>): boolean {
  return status?.phase === 'Failed' && status.reason === 'StateLocked'
}

/** True when an approved plan no longer matched the resources: not a failure of the Stack, it is planned again. */
export function isOutdatedPlan(run: Run): boolean {
  return run.spec.approvedPlan !== undefined && run.status?.reason === 'PlanOutdated'
}
