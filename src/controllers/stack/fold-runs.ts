import { isEnded, phaseOf, type Run, recordedEpoch, type Stack, type StackStatus } from '../../api/index.ts'
import { type Condition, rfc3339 } from '../../kubernetes/object/index.ts'
import type { StackEvent } from './conditions.ts'
import { type Drift, driftAfterFailure, driftedCondition, driftFound, noDrift, presentDrifted } from './drifted-condition.ts'
import { areApplied, carryGenerationsOver, type Inputs, inputsOf, sameInputs, specVersionOf } from './inputs.ts'
import { formatApplied, formatFailure, formatPlanned, truncateMessage } from './messages.ts'
import { countFailure } from './repeated-failure.ts'
import {
  endedAtMs,
  hasChanges,
  isAdHocRun,
  isDestroyPlan,
  isDrained,
  isLifecycleRun,
  isLost,
  isOfDeletion,
  isOutdatedPlan,
  isPartial,
  isRoutine,
  isStateLocked,
  isUnattempted,
  mayHaveWritten,
} from './run-status.ts'
import { specDigest } from './spec-effects.ts'

/** What the Runs of a Stack left behind: the part of its status that later decisions read. */
export type StackRecord = Readonly<Omit<StackStatus, 'observedGeneration' | 'conditions' | 'nextRunAt'>>

export type RunHistory = {
  readonly record: StackRecord
  /** The condition Drifted. */
  readonly drifted: Condition | undefined
  readonly events: readonly StackEvent[]
}

/** What one ended Run changes. */
type Outcome = {
  readonly record?: StackRecord
  readonly drift?: Drift
  readonly event?: StackEvent
}

/**
 * Brings what a Stack's status records up to date with its Runs. The end of each Run is recorded exactly once: {@link recordedEpoch}
 * is that of the newest one, and it is written together with what the Runs changed.
 *
 * `runs` are the Stack's own, oldest first. A Run that `lastRun` names as active and that is not among them has been deleted
 * (before it had a worker: from then on its finalizer keeps it until it has ended).
 */
export function foldRuns(stack: Stack, runs: readonly Run[], nowMs: number): RunHistory {
  const { conditions, observedGeneration: _, nextRunAt: _n, ...known } = stack.status ?? {}
  const record = carryGenerationsOver(known, specVersionOf(stack))
  const { lastRun, lastRunNumber: observedEpoch = 0 } = record
  const recorded = recordedEpoch(stack.status)
  let history: RunHistory = { record, drifted: presentDrifted(conditions), events: [] }

  if (lastRun && recorded < observedEpoch && !runs.some(run => run.metadata.name === lastRun.name)) {
    history = {
      ...history,
      record: { ...record, lastRun: { ...lastRun, phase: 'Canceled', finishedAt: rfc3339(nowMs) } },
      events: [{ type: 'Warning', reason: 'RunDeleted', message: `Run ${lastRun.name} was deleted before it ended` }],
    }
  }
  let previous: Run | undefined
  for (const run of runs) {
    const { epoch } = run.spec
    if (epoch > observedEpoch) history = { ...history, record: observeRun(history.record, run, previous) }
    if (isEnded(run) && epoch > recorded) {
      history = { ...history, record: withOverwritten(withStateVersion(history.record, run), run) }
      history = addOutcome(history, { drift: driftAfterFailure(run), ...outcomeOf(run, history.record, stack, nowMs) }, stack, nowMs)
    }
    if (isLifecycleRun(run)) previous = run
  }
  const newest = runs.at(-1)
  if (!newest || newest.spec.epoch < observedEpoch) return history
  return { ...history, record: { ...history.record, lastRunNumber: newest.spec.epoch, lastRun: summaryOf(newest) } }
}

/** The record once `run` is observed for the first time: a Run with new inputs, or one that a user requested, resets the failure count. */
export function observeRun(record: StackRecord, run: Pick<Run, 'spec'>, previous: Pick<Run, 'spec'> | undefined): StackRecord {
  if (isAdHocRun(run)) return record
  const isRequested = run.spec.reason === 'Requested'
  return {
    ...record,
    ...((isRequested || !previous || isNewAttempt(previous, run)) && { failures: undefined, failingSince: undefined }),
    sameFailure: isRequested ? undefined : record.sameFailure,
  }
}

/**
 * True when `next` is more than a retry of `previous`. For a Destroy only a change of the spec is a new attempt: new commits
 * must not reset the backoff of one that fails.
 */
function isNewAttempt(previous: Pick<Run, 'spec'>, next: Pick<Run, 'spec'>): boolean {
  const isDestroy = isOfDeletion(next)
  if (isOfDeletion(previous) !== isDestroy) return true
  if (isDestroy) return previous.spec.stackRef.generation !== next.spec.stackRef.generation
  const version = { generation: next.spec.stackRef.generation, spec: next.spec.stack }
  return !sameInputs(inputsOf(previous, version, 'execution'), inputsOf(next, version, 'execution'))
}

function withStateVersion(record: StackRecord, { status }: Run): StackRecord {
  const { stateVersion } = status ?? {}
  return stateVersion === undefined ? record : { ...record, stateVersion: Math.max(stateVersion, record.stateVersion ?? 0) }
}

/**
 * The record once `run` has ended: one that has or may have applied part of other inputs leaves neither those nor the applied ones. That is
 * recorded because the Run may be deleted before a user reverts the change.
 */
function withOverwritten(record: StackRecord, run: Run): StackRecord {
  const { applied } = record
  const isComplete = phaseOf(run) === 'Succeeded' && !isPartial(run)
  if (!applied || isComplete || !mayHaveWritten(run)) return record
  // A Refresh writes only the state.
  if (run.spec.type === 'Refresh') return record
  // No retry follows a Run with targets, so a complete Run follows one that failed.
  const isRepaired = isPartial(run) && (isLost(run) || phaseOf(run) === 'Failed')
  if (isSameApply(run, applied) && !isRepaired) return record
  return { ...record, applied: { ...applied, overwrittenBy: run.metadata.name } }
}

/** True for a repetition of what is applied, for example to correct drift: whatever it wrote is part of that. */
function isSameApply({ spec }: Run, { revision, inputsDigest, specDigest: applied }: NonNullable<StackRecord['applied']>): boolean {
  const isSameSource = spec.revision === revision && spec.inputsDigest === inputsDigest
  return spec.type === 'Apply' && isSameSource && specDigest(spec.stack, 'infrastructure') === applied
}

function addOutcome({ record, drifted, events }: RunHistory, outcome: Outcome, stack: Stack, nowMs: number): RunHistory {
  const isDrift = outcome.drift && stack.spec.drift !== 'Off'
  return {
    record: outcome.record ?? record,
    drifted: isDrift ? driftedCondition(drifted, outcome.drift!, stack.metadata.generation ?? 1, nowMs) : drifted,
    events: outcome.event ? [...events, outcome.event] : events,
  }
}

function outcomeOf(run: Run, record: StackRecord, stack: Stack, nowMs: number): Outcome {
  const { name } = run.metadata
  if (isUnattempted(run)) return {}
  const isAdHoc = isAdHocRun(run)
  if (isLost(run)) {
    const event: StackEvent = isDrained(run)
      ? { type: 'Warning', reason: 'RunInterrupted', message: formatStopped(run, 'interrupted') }
      : { type: 'Warning', reason: 'RunLost', message: withMessage(`Run ${name} was lost`, run) }
    if (isAdHoc) return { event, record: { ...record, plan: planAfterApproved(run, record) } }
    // A worker that was stopped is no failure.
    const failingSince = isDrained(run) ? record.failingSince : (record.failingSince ?? finishedAt(run, nowMs))
    return { event, record: { ...record, failingSince, resources: resourcesOf(run, record) } }
  }
  switch (phaseOf(run)) {
    case 'Succeeded': {
      const recovered = isAdHoc ? record : { ...record, failures: undefined, failingSince: undefined, sameFailure: undefined }
      const isCheck = run.spec.options === undefined
      return outcomeOfSuccess(run, isCheck ? { ...recovered, checkedAt: finishedAt(run, nowMs) } : recovered, stack, nowMs)
    }
    case 'Failed':
      return outcomeOfFailure(run, record, nowMs)
    case 'Canceled':
      return {
        event: { type: 'Warning', reason: 'RunCanceled', message: formatStopped(run, 'canceled') },
        record: { ...record, plan: planAfterApproved(run, record) },
      }
    case 'Lost':
    case 'Queued':
    case 'Assigned':
    case 'Preparing':
    case 'Planning':
    case 'Applying':
      throw new Error(`bug: Run ${name} is recorded in phase ${phaseOf(run)}`)
  }
}

function outcomeOfFailure(run: Run, record: StackRecord, nowMs: number): Outcome {
  const event: StackEvent = { type: 'Warning', reason: run.status?.reason ?? 'RunFailed', message: formatFailure(run) }
  const after: StackRecord = { ...record, resources: resourcesOf(run, record), plan: planAfterApproved(run, record) }
  if (isAdHocRun(run)) return { event, record: after }
  if (isOutdatedPlan(run) || isStateLocked(run)) return { event, record: after }
  const failures = (record.failures ?? 0) + 1
  const failingSince = record.failingSince ?? finishedAt(run, nowMs)
  return { event, record: { ...after, failures, failingSince, sameFailure: countFailure(record.sameFailure, run) } }
}

function outcomeOfSuccess(run: Run, record: StackRecord, stack: Stack, nowMs: number): Outcome {
  const { name } = run.metadata
  switch (run.spec.type) {
    case 'Apply':
      return outcomeOfApply(run, record, stack, nowMs)
    case 'Plan':
      return outcomeOfPlan(run, record, stack, nowMs)
    case 'Refresh':
      return {
        event: { type: 'Normal', reason: 'Refreshed', message: `Run ${name} refreshed the state` },
        // A plan that was made for the state before is void.
        record: {
          ...record,
          ...outputsOf(run),
          resources: resourcesOf(run, record),
          plan: hasChanges(run) ? undefined : planAfterApproved(run, record),
        },
      }
    case 'Destroy':
      return {
        event: { type: 'Normal', reason: 'Destroyed', message: `Run ${name} destroyed the resources of the Stack` },
        // Nothing is lost with the state of what does not exist.
        record: {
          ...record,
          ...{ applied: undefined, plan: undefined, outputs: undefined, outputsDigest: undefined, resources: 0, stateVersion: undefined },
        },
      }
  }
}

function outcomeOfApply(run: Run, record: StackRecord, stack: Stack, nowMs: number): Outcome {
  const { name } = run.metadata
  const isChanged = hasChanges(run)
  const counts = run.status?.plan && isChanged ? `: ${formatApplied(run.status.plan)}` : isChanged ? '' : ': no changes'
  const reason = run.spec.reason === 'DriftCheck' && isChanged ? 'DriftCorrected' : 'Applied'
  const isReported = reason === 'DriftCorrected' || !isRoutine(run)
  if (isPartial(run)) {
    const plan = isChanged ? undefined : planAfterApproved(run, record)
    return {
      event: { type: 'Normal', reason: 'TargetsApplied', message: `Run ${name} applied only its targets${counts}` },
      // Nothing is known of the other resources: what is applied remains what it was.
      record: { ...record, ...outputsOf(run), resources: resourcesOf(run, record), plan },
    }
  }
  return {
    ...(isReported && { event: { type: 'Normal', reason, message: `Run ${name} applied${counts}` } }),
    ...(run.spec.options?.refresh !== false && { drift: noDrift(run) }),
    record: {
      ...record,
      ...outputsOf(run),
      resources: resourcesOf(run, record),
      applied: { ...appliedInputs(run, stack), at: finishedAt(run, nowMs), runName: name },
      plan: undefined,
    },
  }
}

function outcomeOfPlan(run: Run, record: StackRecord, stack: Stack, nowMs: number): Outcome {
  const { name } = run.metadata
  const inputs = appliedInputs(run, stack)
  const isChanged = hasChanges(run)
  const counts = run.status?.plan ?? { add: 0, change: 0, destroy: 0 }
  const { planMode, options, reason } = run.spec
  const isOfApplied = areApplied(inputs, record.applied)
  const isDriftCheck = isOfApplied && options === undefined && planMode === undefined
  const found = driftFound(run, counts)
  const what = `planned${planMode === 'Refresh' ? ' a refresh' : ''}${isPartial(run) ? ' only its targets' : ''}`
  const planned = `Run ${name} ${what}: ${isChanged ? formatPlanned(counts, planMode) : 'no changes'}`
  if (isDestroyPlan(run)) return { event: { type: 'Normal', reason: 'Planned', message: planned }, record }
  const report: Omit<Outcome, 'record'> = !isDriftCheck
    ? { event: { type: 'Normal', reason: 'Planned', message: planned } }
    : {
        drift: isChanged ? found : noDrift(run),
        ...(isChanged && { event: { type: 'Warning', reason: found.reason, message: found.message } }),
      }
  if (run.spec.stack.approval !== 'Manual') return { ...report, record }
  if (!isChanged && (planMode !== undefined || isPartial(run))) return { ...report, record }
  if (!isChanged) {
    return {
      ...report,
      drift: noDrift(run),
      record: {
        ...record,
        ...(run.status?.outputsDigest !== undefined && outputsOf(run)),
        resources: resourcesOf(run, record),
        plan: undefined,
        // Nothing to approve: the resources already match these inputs.
        applied: isOfApplied ? record.applied : { ...inputs, at: finishedAt(run, nowMs), runName: name },
      },
    }
  }
  const isToApprove = run.status?.plan && (!isDriftCheck || stack.spec.drift !== 'Report' || reason === 'Requested')
  if (!isToApprove) return { ...report, record }
  const { digest, add, change, destroy } = run.status!.plan!
  const kind = { ...(planMode === 'Refresh' && { mode: planMode }), ...(options && { options }) }
  return { ...report, record: { ...record, plan: { digest, runName: name, ...plannedInputs(run, stack), ...kind, add, change, destroy } } }
}

const appliedInputs = (run: Run, stack: Stack): Inputs & { specDigest: string } => ({
  ...inputsOf(run, specVersionOf(stack), 'infrastructure'),
  specDigest: specDigest(run.spec.stack, 'infrastructure'),
})

const plannedInputs = (run: Run, stack: Stack): Inputs & { specDigest: string } => ({
  ...inputsOf(run, specVersionOf(stack), 'execution'),
  specDigest: specDigest(run.spec.stack, 'execution'),
})

function summaryOf(run: Run): NonNullable<StackStatus['lastRun']> {
  const { type, reason } = run.spec
  const finished = isEnded(run) && { finishedAt: run.status?.finishedAt ?? rfc3339(endedAtMs(run)) }
  return { name: run.metadata.name, type, phase: phaseOf(run), reason, ...finished }
}

function finishedAt(run: Run, nowMs: number): string {
  return run.status?.finishedAt ?? rfc3339(nowMs)
}

function resourcesOf(run: Run, record: StackRecord): number | undefined {
  return run.status?.resources ?? record.resources
}

function outputsOf({ status }: Run): Pick<StackRecord, 'outputs' | 'outputsDigest'> {
  return { outputs: status?.outputs, outputsDigest: status?.outputsDigest || undefined }
}

/** A saved plan cannot be applied again after part of it was: it needs a new plan and a new approval. */
function planAfterApproved(run: Run, { plan }: StackRecord): StackRecord['plan'] {
  return run.spec.approvedPlan ? undefined : plan
}

/** `Run app-3f2a1-4 was canceled on request`: the message of the Run usually starts with the verb. */
function formatStopped(run: Run, verb: 'canceled' | 'interrupted'): string {
  const message = truncateMessage(run.status?.message ?? '')
  return message.startsWith(`${verb} `)
    ? `Run ${run.metadata.name} was ${message}`
    : withMessage(`Run ${run.metadata.name} was ${verb}`, run)
}

function withMessage(text: string, run: Run): string {
  return run.status?.message ? `${text}: ${truncateMessage(run.status.message)}` : text
}
