import { isEnded, phaseOf, type Run, recordedEpoch, type Stack, type StackStatus } from '../../api/index.ts'
import { type Condition, findCondition, rfc3339, setCondition } from '../../kubernetes/object/index.ts'
import type { StackEvent } from './conditions.ts'
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
  isRoutine,
  isSuperseded,
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
  readonly drift?: { readonly isFound: boolean; readonly message: string }
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
  let history: RunHistory = { record, drifted: findCondition(conditions, 'Drifted'), events: [] }

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
      history = addOutcome(history, outcomeOf(run, history.record, stack, nowMs), stack, nowMs)
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
    failures: isRequested || !previous || isNewAttempt(previous, run) ? undefined : record.failures,
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
 * The record once `run` has ended: one that may have applied part of other inputs leaves neither those nor the applied ones. That is
 * recorded because the Run may be deleted before a user reverts the change.
 */
function withOverwritten(record: StackRecord, run: Run): StackRecord {
  const { applied } = record
  if (!applied || phaseOf(run) === 'Succeeded' || !mayHaveWritten(run)) return record
  // A Refresh writes only the state.
  if (run.spec.type === 'Refresh' || isSameApply(run, applied)) return record
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
  const isAdHoc = isAdHocRun(run)
  if (isLost(run)) {
    const event: StackEvent = isDrained(run)
      ? { type: 'Warning', reason: 'RunInterrupted', message: formatStopped(run, 'interrupted') }
      : { type: 'Warning', reason: 'RunLost', message: withMessage(`Run ${name} was lost`, run) }
    return isAdHoc ? { event } : { event, record: { ...record, resources: resourcesOf(run, record) } }
  }
  switch (phaseOf(run)) {
    case 'Succeeded': {
      const recovered = isAdHoc ? record : { ...record, failures: undefined, sameFailure: undefined }
      return outcomeOfSuccess(run, { ...recovered, checkedAt: finishedAt(run, nowMs) }, stack, nowMs)
    }
    case 'Failed':
      return outcomeOfFailure(run, record)
    case 'Canceled':
      if (isSuperseded(run)) return {}
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

function outcomeOfFailure(run: Run, record: StackRecord): Outcome {
  const event: StackEvent = { type: 'Warning', reason: run.status?.reason ?? 'RunFailed', message: formatFailure(run) }
  if (isAdHocRun(run)) return { event }
  const after: StackRecord = { ...record, resources: resourcesOf(run, record), plan: planAfterApproved(run, record) }
  if (isOutdatedPlan(run)) return { event, record: after }
  const failures = (record.failures ?? 0) + 1
  return { event, record: { ...after, failures, sameFailure: countFailure(record.sameFailure, run) } }
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
          plan: hasChanges(run) ? undefined : record.plan,
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
  return {
    ...(isReported && { event: { type: 'Normal', reason, message: `Run ${name} applied${counts}` } }),
    drift: { isFound: false, message: inSyncMessage },
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
  const isDriftCheck = areApplied(inputs, record.applied)
  const driftMessage = isChanged ? `Run ${name} found drift: ${formatPlanned(counts)}` : inSyncMessage
  const planned = `Run ${name} planned: ${isChanged ? formatPlanned(counts) : 'no changes'}`
  if (isDestroyPlan(run)) return { event: { type: 'Normal', reason: 'Planned', message: planned }, record }
  const report: Omit<Outcome, 'record'> = !isDriftCheck
    ? { event: { type: 'Normal', reason: 'Planned', message: planned } }
    : {
        drift: { isFound: isChanged, message: driftMessage },
        ...(isChanged && { event: { type: 'Warning', reason: 'DriftFound', message: driftMessage } }),
      }
  if (run.spec.stack.approval !== 'Manual') return { ...report, record }
  if (!isChanged) {
    return {
      ...report,
      record: {
        ...record,
        ...(run.status?.outputsDigest !== undefined && outputsOf(run)),
        resources: resourcesOf(run, record),
        plan: undefined,
        // Nothing to approve: the resources already match these inputs.
        applied: isDriftCheck ? record.applied : { ...inputs, at: finishedAt(run, nowMs), runName: name },
      },
    }
  }
  const isToApprove = run.status?.plan && (!isDriftCheck || stack.spec.drift !== 'Report' || run.spec.reason === 'Requested')
  if (!isToApprove) return { ...report, record }
  const { digest, add, change, destroy } = run.status!.plan!
  return { ...report, record: { ...record, plan: { digest, runName: name, ...plannedInputs(run, stack), add, change, destroy } } }
}

const appliedInputs = (run: Run, stack: Stack): Inputs & { specDigest: string } => ({
  ...inputsOf(run, specVersionOf(stack), 'infrastructure'),
  specDigest: specDigest(run.spec.stack, 'infrastructure'),
})

const plannedInputs = (run: Run, stack: Stack): Inputs & { specDigest: string } => ({
  ...inputsOf(run, specVersionOf(stack), 'execution'),
  specDigest: specDigest(run.spec.stack, 'execution'),
})

const inSyncMessage = 'The resources match the Stack'

function driftedCondition(
  previous: Condition | undefined,
  { isFound, message }: NonNullable<Outcome['drift']>,
  observedGeneration: number,
  nowMs: number,
): Condition | undefined {
  const reason = isFound ? 'DriftFound' : 'InSync'
  const update = { type: 'Drifted', status: isFound ? 'True' : 'False', reason, message, observedGeneration } as const
  return setCondition(previous && [previous], update, nowMs)[0]
}

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
