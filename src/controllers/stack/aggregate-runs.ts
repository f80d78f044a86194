import { endedPhases, isEnded, type Run, type RunPhase, type Stack, type StackStatus } from '../../api/index.ts'
import { rfc3339, setCondition } from '../../kubernetes/object/index.ts'
import type { StackEvent } from './conditions.ts'
import { inputsOf, sameInputs } from './inputs.ts'
import { formatApplied, formatFailure, formatPlanned, truncateMessage } from './messages.ts'
import { countFailure } from './repeated-failure.ts'
import { endedAtMs, hasChanges, isAdHocRun, isLifecycleRun, isLost, isSuperseded, phaseOf } from './run-status.ts'

/**
 * Brings a Stack's status up to date with its Runs. Each ended Run is counted exactly once: `lastRunNumber` and the phase in
 * `lastRun` record which Runs are counted, and they are written together with the counts.
 *
 * `runs` are the Stack's own, oldest first. A Run that `lastRun` names as active and that is not among them has been deleted
 * (before it had a worker: from then on its finalizer keeps it until it has ended).
 */
export function aggregateRuns(stack: Stack, runs: readonly Run[], nowMs: number): { status: StackStatus; events: StackEvent[] } {
  const status: StackStatus = { ...stack.status }
  const events: StackEvent[] = []
  const countedEpoch = status.lastRunNumber ?? 0
  const isLastCounted = status.lastRun !== undefined && endedPhases.includes(status.lastRun.phase as RunPhase)

  if (status.lastRun && !isLastCounted && !runs.some(run => run.metadata.name === status.lastRun!.name)) {
    events.push({ type: 'Warning', reason: 'RunDeleted', message: `Run ${status.lastRun.name} was deleted before it ended` })
    status.lastRun = { ...status.lastRun, phase: 'Canceled', finishedAt: rfc3339(nowMs) }
  }

  let previous: Run | undefined
  for (const run of runs) {
    const { epoch } = run.spec
    if (epoch > countedEpoch) observeRun(status, run, previous)
    const isCounted = epoch < countedEpoch || (epoch === countedEpoch && isLastCounted)
    if (isEnded(run) && !isCounted) countEndedRun({ stack, status, run, events, nowMs })
    if (isLifecycleRun(run)) previous = run
  }

  const newest = runs.at(-1)
  if (newest && newest.spec.epoch >= countedEpoch) {
    status.lastRunNumber = newest.spec.epoch
    status.lastRun = {
      name: newest.metadata.name,
      type: newest.spec.type,
      phase: phaseOf(newest),
      reason: newest.spec.reason,
      ...(isEnded(newest) && { finishedAt: newest.status?.finishedAt ?? rfc3339(endedAtMs(newest)) }),
    }
  }
  return { status, events }
}

/** Records a Run when it is first observed: it resets the failure count if it has new inputs or was requested by a user. */
export function observeRun(status: StackStatus, run: Pick<Run, 'spec'>, previous: Pick<Run, 'spec'> | undefined): void {
  if (isAdHocRun(run)) return
  if (run.spec.reason === 'Requested' || !previous || isNewAttempt(previous, run)) delete status.failures
  if (run.spec.reason === 'Requested') delete status.sameFailure
}

/**
 * True when `next` is more than a retry of `previous`. For a Destroy only a change of the spec is a new attempt: new commits
 * must not reset the backoff of one that fails.
 */
export function isNewAttempt(previous: Pick<Run, 'spec'>, next: Pick<Run, 'spec'>): boolean {
  const isDestroy = next.spec.type === 'Destroy'
  if ((previous.spec.type === 'Destroy') !== isDestroy) return true
  return isDestroy ? previous.spec.stackRef.generation !== next.spec.stackRef.generation : !sameInputs(inputsOf(previous), inputsOf(next))
}

type EndedRun = {
  readonly stack: Stack
  readonly status: StackStatus
  readonly run: Run
  readonly events: StackEvent[]
  readonly nowMs: number
}

function countEndedRun(ended: EndedRun): void {
  const { status, run, events } = ended
  const { name } = run.metadata
  const isAdHoc = isAdHocRun(run)
  if (isLost(run)) {
    if (!isAdHoc) copyResourceCount(status, run)
    events.push({ type: 'Warning', reason: 'RunLost', message: withMessage(`Run ${name} was lost`, run) })
    return
  }
  switch (phaseOf(run)) {
    case 'Succeeded':
      if (!isAdHoc) {
        delete status.failures
        delete status.sameFailure
      }
      countSucceededRun(ended)
      return
    case 'Failed':
      events.push({ type: 'Warning', reason: run.status?.reason ?? 'RunFailed', message: formatFailure(run) })
      if (isAdHoc) return
      copyResourceCount(status, run)
      // A saved plan cannot be applied again after part of it was: it needs a new plan and a new approval.
      if (run.spec.approvedPlan) delete status.plan
      if (isOutdatedPlan(run)) return
      status.failures = (status.failures ?? 0) + 1
      countFailure(status, run)
      return
    case 'Canceled':
      if (isSuperseded(run)) return
      events.push({ type: 'Warning', reason: 'RunCanceled', message: formatCanceled(run) })
      if (run.spec.approvedPlan) delete status.plan
      return
    case 'Lost':
    case 'Queued':
    case 'Assigned':
    case 'Preparing':
    case 'Planning':
    case 'Applying':
      throw new Error(`bug: Run ${name} is counted in phase ${phaseOf(run)}`)
  }
}

function countSucceededRun(ended: EndedRun): void {
  const { status, run, events, nowMs } = ended
  const { name } = run.metadata
  status.checkedAt = finishedAt(run, nowMs)
  switch (run.spec.type) {
    case 'Apply':
      countApply(ended)
      return
    case 'Plan':
      countPlan(ended)
      return
    case 'Refresh':
      copyOutputs(status, run)
      copyResourceCount(status, run)
      events.push({ type: 'Normal', reason: 'Refreshed', message: `Run ${name} refreshed the state` })
      return
    case 'Destroy':
      delete status.applied
      delete status.plan
      delete status.outputs
      delete status.outputsDigest
      status.resources = 0
      events.push({ type: 'Normal', reason: 'Destroyed', message: `Run ${name} destroyed the resources of the Stack` })
  }
}

function countApply(ended: EndedRun): void {
  const { status, run, events, nowMs } = ended
  const { name } = run.metadata
  const isChanged = hasChanges(run)
  copyOutputs(status, run)
  copyResourceCount(status, run)
  status.applied = { ...inputsOf(run), at: finishedAt(run, nowMs), runName: name }
  delete status.plan
  setDrifted(ended, false, inSyncMessage)
  const counts = run.status?.plan && isChanged ? `: ${formatApplied(run.status.plan)}` : isChanged ? '' : ': no changes'
  const reason = run.spec.reason === 'DriftCheck' && isChanged ? 'DriftCorrected' : 'Applied'
  events.push({ type: 'Normal', reason, message: `Run ${name} applied${counts}` })
}

function countPlan(ended: EndedRun): void {
  const { stack, status, run, events, nowMs } = ended
  const { name } = run.metadata
  const inputs = inputsOf(run)
  const isChanged = hasChanges(run)
  const counts = run.status?.plan ?? { add: 0, change: 0, destroy: 0 }
  const isDriftCheck = sameInputs(status.applied, inputs)
  if (isDriftCheck) {
    const message = isChanged ? `Run ${name} found drift: ${formatPlanned(counts)}` : inSyncMessage
    setDrifted(ended, isChanged, message)
    if (isChanged) events.push({ type: 'Warning', reason: 'DriftFound', message })
  } else {
    const result = isChanged ? formatPlanned(counts) : 'no changes'
    events.push({ type: 'Normal', reason: 'Planned', message: `Run ${name} planned: ${result}` })
  }
  if (run.spec.stack.approval !== 'Manual') return
  if (!isChanged) {
    delete status.plan
    // Nothing to approve: the resources already match these inputs.
    if (!isDriftCheck) status.applied = { ...inputs, at: finishedAt(run, nowMs), runName: name }
    if (run.status?.outputsDigest !== undefined) copyOutputs(status, run)
  } else if (run.status?.plan && (!isDriftCheck || stack.spec.drift !== 'Report' || run.spec.reason === 'Requested')) {
    const { digest, add, change, destroy } = run.status.plan
    status.plan = { digest, runName: name, ...inputs, add, change, destroy }
  }
}

const inSyncMessage = 'The resources match the Stack'

function setDrifted({ stack, status, nowMs }: EndedRun, isDrifted: boolean, message: string): void {
  if (stack.spec.drift === 'Off') return
  const reason = isDrifted ? 'DriftFound' : 'InSync'
  const observedGeneration = stack.metadata.generation ?? 1
  const update = { type: 'Drifted', status: isDrifted ? 'True' : 'False', reason, message, observedGeneration } as const
  status.conditions = setCondition(status.conditions, update, nowMs)
}

function finishedAt(run: Run, nowMs: number): string {
  return run.status?.finishedAt ?? rfc3339(nowMs)
}

function copyResourceCount(status: StackStatus, run: Run): void {
  if (run.status?.resources !== undefined) status.resources = run.status.resources
}

function copyOutputs(status: StackStatus, run: Run): void {
  const { outputs, outputsDigest } = run.status ?? {}
  if (outputs) status.outputs = outputs
  else delete status.outputs
  if (outputsDigest) status.outputsDigest = outputsDigest
  else delete status.outputsDigest
}

/** True when an approved plan no longer matched the resources: not a failure of the Stack, it is planned again. */
export function isOutdatedPlan(run: Run): boolean {
  return run.spec.approvedPlan !== undefined && run.status?.reason === 'PlanOutdated'
}

/** `Run app-3f2a1-4 was canceled on request`: the message of a canceled Run usually starts with `canceled`. */
function formatCanceled(run: Run): string {
  const message = truncateMessage(run.status?.message ?? '')
  return message.startsWith('canceled ')
    ? `Run ${run.metadata.name} was ${message}`
    : withMessage(`Run ${run.metadata.name} was canceled`, run)
}

function withMessage(text: string, run: Run): string {
  return run.status?.message ? `${text}: ${truncateMessage(run.status.message)}` : text
}
