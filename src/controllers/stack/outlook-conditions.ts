import {
  isBlockedReason,
  isReconcilingPendingReason,
  isStateError,
  oarlockCommand,
  phaseOf,
  type ReconcilingReason,
  type Run,
  type StalledReason,
} from '../../api/index.ts'
import { findCondition } from '../../kubernetes/object/index.ts'
import type { Outlook } from './choose-next.ts'
import type { PlannedRun } from './choose-run.ts'
import {
  awaitingApprovalCondition,
  differingCondition,
  readyCondition,
  reconcilingCondition,
  reportsApplied,
  type StackConditions,
  stalledCondition,
  suspendedCondition,
} from './conditions.ts'
import { lostRunLimit } from './constants.ts'
import type { RevisionError, UserLock } from './decision.ts'
import { type StackFacts, sourceError } from './facts.ts'
import { approvalReason, formatAwaitingApproval } from './format-approval.ts'
import { areApplied, type Inputs, inputsOf, sameInputs, specVersionOf } from './inputs.ts'
import {
  failureReason,
  formatActiveRun,
  formatApplied,
  formatCauses,
  formatDigest,
  formatFailure,
  formatNextAttempt,
  formatTime,
  truncateMessage,
} from './messages.ts'
import { type Attempts, formatAttempts, formatPersistent, isPersistent, persistentRunFailure } from './persistent-failure.ts'
import { restoredConditions, stateErrorConditions, stateLockedConditions } from './recovery-conditions.ts'
import { formatRejected } from './rejection.ts'
import { consecutiveLostRuns, hasChanges, isAdHocRun, isDestroyPlan, isDrained, isLifecycleRun, isPartial } from './run-status.ts'

const sourceErrorMark = '. The source cannot be resolved at present: '

/** The conditions while no Run is active. */
export function outlookConditions(facts: StackFacts, outlook: Outlook): StackConditions {
  const { input, settings } = facts
  const { stack } = input
  switch (outlook.kind) {
    case 'invalidSpec':
      return stalledCondition('InvalidSpec', formatCauses(input.specErrors))
    case 'dependencyCycle': {
      const fields = 'spec.dependsOn or spec.variablesFrom[].stackRef'
      const path = input.cycle?.join(' → ')
      return stalledCondition('DependencyCycle', `Stacks form a dependency cycle: ${path}. Remove one of these references from ${fields}`)
    }
    case 'inputNotFound':
      return reconcilingCondition('InputNotFound', formatCauses(input.inputErrors ?? []))
    case 'sourceError':
      return sourceErrorConditions(outlook.error)
    case 'resolvingSource':
      return reconcilingCondition('ResolvingSource', 'The revision of the source is being resolved')
    case 'stateError':
      return stateErrorConditions(stack, outlook.error)
    case 'restored':
      return withSourceError(restoredConditions(facts), sourceError(input))
    case 'held':
      return heldConditions(facts, outlook)
    case 'run':
      return plannedConditions(facts, outlook.planned)
    case 'inSync':
      return withSourceError(appliedConditions(facts), sourceError(input))
    case 'awaitApproval':
      return withSourceError(awaitingApprovalCondition(approvalReason(facts), formatAwaitingApproval(facts)), sourceError(input))
    case 'planRejected':
      return stalled(facts, 'PlanRejected', formatRejected(facts))
    case 'poisoned': {
      const hint = `No further Run is created; fix the cause, then change the Stack or request a Run: ${oarlockCommand('run', stack.metadata)}`
      return stalled(facts, 'Poisoned', `The last ${outlook.count} Runs failed the same way. ${formatFailure(outlook.last)}. ${hint}`)
    }
    case 'crashing': {
      const { last, count } = outlook
      const hint = `No further Run is created; fix the cause, then change the Stack or request a Run: ${oarlockCommand('run', stack.metadata)}`
      return stalled(facts, 'WorkerCrashed', `The last ${count} Runs crashed their workers. ${formatFailure(last)}. ${hint}`)
    }
    case 'canceled': {
      const hint = `change the Stack or request another Run: ${oarlockCommand('run', stack.metadata)}`
      return stalled(facts, 'RunCanceled', `Run ${outlook.last.metadata.name} was canceled; ${hint}`)
    }
    case 'notRetryable': {
      const { last } = outlook
      const { reason, message = '' } = last.status ?? {}
      if (isStateError(reason)) return stateErrorConditions(stack, { reason, message })
      return stalled(facts, failureReason(last), `${formatFailure(last)}. It is not retried because the same inputs would fail again`)
    }
    case 'retriesExhausted': {
      const hint = `${formatRetriesExhausted(settings.retryLimit)}; request another Run: ${oarlockCommand('run', stack.metadata)}`
      return stalled(facts, 'RetriesExhausted', `${formatFailure(outlook.last)}. ${hint}`)
    }
  }
}

/** The conditions while `active` runs. */
export function activeConditions(facts: StackFacts, active: Run, outlook: Outlook | undefined): StackConditions {
  const { record, settings, inputs } = facts
  if (!outlook) {
    if (isViolatingPolicy(active)) return policyViolation(active)
    const waiting = active.spec.type === 'Destroy' || isDestroyPlan(active) ? '' : 'Deletion is waiting: '
    const pending = pendingReason(active)
    return retryingConditions(facts, active, isBlockedReason(pending) ? pending : 'Deleting', `${waiting}${formatActiveRun(active)}`)
  }
  const conditions = outlookConditions(facts, outlook)
  const activeInputs = inputsOf(active, specVersionOf(facts.input.stack), 'infrastructure')
  const isCheck = active.spec.reason === 'DriftCheck' && areApplied(activeInputs, record.applied)
  if (isAdHocRun(active) || (isCheck && reportsApplied(conditions))) return conditions
  if (isViolatingPolicy(active)) return policyViolation(active)
  // A Stack stays Stalled during automatic retries for a missing engine, but not during a Run that a user requested.
  if (conditions.stalled && (!isFromRuns(outlook) || active.spec.reason === 'Retry')) return conditions
  const retry = (record.failures ?? 0) > 0 && record.lastRun ? ` (retry ${record.failures} of ${settings.retryLimit})` : ''
  const isOutdated = inputs !== undefined && !sameInputs(activeInputs, inputs)
  const following = isOutdated ? `. A Run for ${formatChange(activeInputs, inputs)} follows` : ''
  const pending = pendingReason(active)
  const reason = isReconcilingPendingReason(pending) ? pending : 'Progressing'
  return retryingConditions(facts, active, reason, `${formatActiveRun(active)}${retry}${following}`)
}

/** The conditions while `active` runs. If it repeats a persistent failure, that remains the reason, and the message has the last error. */
function retryingConditions(facts: StackFacts, { spec }: Run, reason: ReconcilingReason, message: string): StackConditions {
  const isRetry = spec.reason === 'Retry' || spec.reason === 'RecoveredFrom'
  const attempts = isRetry ? persistentRunFailure(facts, consecutiveLostRuns(facts.runs, isLifecycleRun)) : undefined
  return reconcilingWith(attempts, reason, attempts && facts.last ? `${message}. ${formatFailure(facts.last)}` : message)
}

/** Reports what happens next; if `attempts` have failed persistently, with that as the reason. */
export function reconcilingWith(attempts: Attempts | undefined, reason: ReconcilingReason, message: string): StackConditions {
  return attempts
    ? reconcilingCondition('PersistentFailure', `${formatAttempts(attempts)}. ${message}`)
    : reconcilingCondition(reason, message)
}

/** Why a Run is queued; undefined once it has a worker, and before the dispatcher has reported it. */
const pendingReason = (active: Run): string | undefined => (phaseOf(active) === 'Queued' ? active.status?.reason : undefined)

/** True for a Run that no worker may get, until the Stack or the policy of its Tenant or its WorkerPool changes. */
const isViolatingPolicy = (active: Run): boolean => pendingReason(active) === 'PolicyViolation'

const policyViolation = (active: Run): StackConditions => stalledCondition('PolicyViolation', formatActiveRun(active))

/** True when an outlook follows from earlier Runs, and not from the Stack, its dependencies or its source. */
function isFromRuns({ kind }: Outlook): boolean {
  switch (kind) {
    case 'run':
    case 'inSync':
    case 'awaitApproval':
    case 'planRejected':
    case 'poisoned':
    case 'crashing':
    case 'canceled':
    case 'notRetryable':
    case 'retriesExhausted':
      return true
    default:
      return false
  }
}

/** The conditions of a Stack whose next Run the server rejects. */
export function rejectedRunConditions(message: string, attempts: Attempts, nextMs: number): StackConditions {
  const persistent = isPersistent(attempts) ? attempts : undefined
  const text = `The API server rejects the next Run: ${truncateMessage(message)}. Next attempt at ${formatTime(nextMs)}`
  return reconcilingWith(persistent, 'RunRejected', text)
}

function heldConditions(facts: StackFacts, { planned, by }: Extract<Outlook, { kind: 'held' }>): StackConditions {
  const conditions = plannedConditions(facts, planned)
  const isApplied = reportsApplied(conditions)
  if (by === 'revision') {
    const error = sourceError(facts.input)
    return error && !isApplied ? retryingSource(error) : withSourceError(conditions, error)
  }
  // A user waits for what they requested; a drift check is no reason to report a Stack that is in sync.
  if (isApplied && !(planned.reason === 'Requested' && isLock(by))) return conditions
  if (isLock(by)) return stateLockedConditions(facts.input.stack, by)
  if (by !== 'suspend') return reconcilingCondition(by.reason, by.message)
  return suspendedCondition(`The Stack is suspended; set spec.suspend to false to resume. ${conditions.ready.message}`)
}

const isLock = (by: Extract<Outlook, { kind: 'held' }>['by']): by is UserLock => typeof by === 'object' && 'holder' in by

/** The conditions until the planned Run is created. */
function plannedConditions(facts: StackFacts, planned: PlannedRun): StackConditions {
  const { after, atMs } = planned
  const { record, inputs, inSync, settings } = facts
  if (!after) {
    if (inSync) return appliedConditions(facts, planned)
    // It does not need the present source, which may be unknown.
    if (planned.planMode === 'Destroy')
      return reconcilingCondition('Progressing', 'A Run is needed for the requested plan of the destruction')
    if (sameInputs(record.applied, inputs)) {
      return reconcilingCondition('Progressing', `A Run is needed because ${formatOverwritten(facts)}`)
    }
    const target = record.plan && settings.manualApproval ? 'the approved plan' : formatChange(record.applied, inputs!)
    return reconcilingCondition('Progressing', `A Run is needed for ${target}`)
  }
  const { run } = after
  const failure = formatFailure(run)
  const reason = failureReason(run)
  switch (after.kind) {
    case 'lost': {
      const { name } = run.metadata
      if (after.count < lostRunLimit) {
        return isDrained(run)
          ? reconcilingCondition('RunInterrupted', `Run ${name} was interrupted because its worker was stopped`)
          : reconcilingCondition('RunLost', `Run ${name} was lost`)
      }
      const lost = `The last ${after.count} Runs were lost, most recently ${name}`
      return reconcilingWith(persistentRunFailure(facts, after.count), 'RunLost', `${lost}. Next attempt at ${formatTime(atMs)}`)
    }
    case 'planOutdated':
      return reconcilingCondition(reason, failure)
    case 'stateLocked':
      return reconcilingCondition(reason, `${failure}. Next attempt at ${formatTime(atMs)}`)
    case 'programNotFound':
      return stalledCondition(reason, `${formatPersistent(persistentRunFailure(facts))}${failure}. Next attempt at ${formatTime(atMs)}`)
    case 'failed': {
      const retry = `Retry ${Math.max(1, record.failures ?? 0)} of ${settings.retryLimit}`
      return reconcilingWith(persistentRunFailure(facts), reason, `${failure}. ${retry} at ${formatTime(atMs)}`)
    }
  }
}

/** Why the applied inputs are not what the resources have. */
function formatOverwritten({ record, runs }: StackFacts): string {
  const name = record.applied?.overwrittenBy
  const run = runs.find(({ metadata }) => metadata.name === name)
  const part = run && isPartial(run) ? 'part of its targets' : 'part of other inputs'
  return run && phaseOf(run) === 'Succeeded'
    ? `Run ${name} applied only ${part}`
    : `Run ${name} did not succeed and may have applied ${part}`
}

function stalled({ input }: StackFacts, reason: StalledReason, message: string): StackConditions {
  return withSourceError(stalledCondition(reason, message), sourceError(input))
}

/** What differs between the inputs of the last Run and the current ones: `generation 4`, `revision 1f9c…` or `changed inputs`. */
function formatChange(previous: Inputs | undefined, inputs: Inputs): string {
  if (!previous || previous.generation !== inputs.generation) return `generation ${inputs.generation}`
  return previous.revision !== inputs.revision ? `revision ${formatDigest(inputs.revision)}` : 'changed inputs'
}

/** The conditions of a Stack whose inputs are applied. `planned` is its next check. */
function appliedConditions(facts: StackFacts, planned?: PlannedRun): StackConditions {
  const { input, drifted, settings } = facts
  if (drifted?.status !== 'True' && drifted?.status !== 'Unknown') return inSyncCondition(facts)
  const isDrift = drifted.status === 'True'
  const request = oarlockCommand('run', input.stack.metadata)
  const isScheduled = planned !== undefined && (!isDrift || planned.type === 'Apply')
  const at = isScheduled && planned.atMs > input.nowMs ? `at ${formatTime(planned.atMs)}, or now with: ${request}` : 'by the next Run'
  const next = settings.suspended
    ? 'The Stack is suspended; set spec.suspend to false to resume'
    : isScheduled
      ? `${isDrift ? 'It is corrected' : 'They are compared'} ${at}`
      : `${isDrift ? 'Correct it' : 'Compare and correct them'} with: ${request}`
  return differingCondition(isDrift ? 'Drifted' : 'ApplyIncomplete', `${drifted.message}. ${next}`)
}

function inSyncCondition({ input, record, runs }: StackFacts): StackConditions {
  const run = runs.find(({ metadata }) => metadata.name === record.applied?.runName)
  if (run) {
    const { plan } = run.status ?? {}
    if (!hasChanges(run)) return readyCondition('In sync: the last Run found no changes')
    return readyCondition(plan ? `Applied: ${formatApplied(plan)}` : 'Applied')
  }
  // The Run is no longer in the history: its message is retained.
  const previous = findCondition(input.stack.status?.conditions, 'Ready')
  const message =
    previous?.reason === 'Applied' ? previous.message.split(sourceErrorMark, 1)[0]! : `Applied by Run ${record.applied?.runName}`
  return readyCondition(message)
}

function formatRetriesExhausted(limit: number): string {
  if (limit === 0) return 'It is not retried because spec.retry.limit is 0'
  return limit === 1 ? 'The only retry failed' : `All ${limit} retries failed`
}

/** A Stack whose inputs are applied is Ready as long as its source may only be unreachable for a moment. */
function withSourceError(conditions: StackConditions, error: RevisionError | undefined): StackConditions {
  if (!error) return conditions
  if (reportsApplied(conditions) && persistentSourceError(error)) return retryingSource(error)
  const message = `${conditions.ready.message}${sourceErrorMark}${truncateMessage(error.message)}`
  return { ...conditions, ready: { ...conditions.ready, message } }
}

/** The conditions of a Stack that cannot continue without the revision of its source. */
export function sourceErrorConditions(error: RevisionError): StackConditions {
  return error.retryable ? retryingSource(error) : stalledCondition(error.reason, truncateMessage(error.message))
}

function retryingSource(error: RevisionError): StackConditions {
  const attempts = persistentSourceError(error)
  const retry = error.nextMs === undefined ? '' : formatNextAttempt(error.nextMs)
  return reconcilingWith(attempts, error.reason, `${truncateMessage(error.message)}${retry}`)
}

const persistentSourceError = ({ attempts }: RevisionError) => (attempts && isPersistent(attempts) ? attempts : undefined)
