import { isStateError, oarlockCommand, phaseOf, type Run } from '../../api/index.ts'
import { findCondition } from '../../kubernetes/object/index.ts'
import type { Approval } from './approval.ts'
import type { Outlook } from './choose-next.ts'
import type { PlannedRun } from './choose-run.ts'
import { readyCondition, reconcilingCondition, type StackConditions, stalledCondition, suspendedCondition } from './conditions.ts'
import { lostRunLimit } from './constants.ts'
import type { RevisionError } from './decision.ts'
import { type StackFacts, sourceError } from './facts.ts'
import type { StackRecord } from './fold-runs.ts'
import { areApplied, type Inputs, inputsOf, sameInputs, specVersionOf } from './inputs.ts'
import {
  formatActiveRun,
  formatApplied,
  formatCauses,
  formatDigest,
  formatFailure,
  formatPlanned,
  formatTime,
  truncateMessage,
} from './messages.ts'
import { restoredConditions, stateErrorConditions } from './recovery-conditions.ts'
import { hasChanges, isAdHocRun, isDestroyPlan, isDrained } from './run-status.ts'

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
    case 'sourceError': {
      const { error } = outlook
      return error.retryable ? retryingSource(error) : stalledCondition(error.reason, truncateMessage(error.message))
    }
    case 'resolvingSource':
      return reconcilingCondition('ResolvingSource', 'The revision of the source is being resolved')
    case 'stateError':
      return stateErrorConditions(stack, outlook.error)
    case 'restored':
      return restoredConditions(facts)
    case 'held':
      return heldConditions(facts, outlook)
    case 'run':
      return plannedConditions(facts, outlook.planned)
    case 'inSync':
      return withSourceError(appliedCondition(facts), sourceError(input))
    case 'awaitApproval':
      return withSourceError(awaitingApproval(facts), sourceError(input))
    case 'poisoned': {
      const hint = `No further Run is created; fix the cause, then change the Stack or request a Run: ${oarlockCommand('run', stack.metadata)}`
      return stalled(facts, 'Poisoned', `The last ${outlook.count} Runs failed the same way. ${formatFailure(outlook.last)}. ${hint}`)
    }
    case 'canceled': {
      const hint = `change the Stack or request another Run: ${oarlockCommand('run', stack.metadata)}`
      return stalled(facts, 'RunCanceled', `Run ${outlook.last.metadata.name} was canceled; ${hint}`)
    }
    case 'notRetryable': {
      const { last } = outlook
      const { reason = 'RunFailed', message = '' } = last.status ?? {}
      if (isStateError(reason)) return stateErrorConditions(stack, { reason, message })
      return stalled(facts, reason, `${formatFailure(last)}. It is not retried because the same inputs would fail again`)
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
    return reconcilingCondition('Deleting', `${waiting}${formatActiveRun(active)}`)
  }
  const conditions = outlookConditions(facts, outlook)
  const activeInputs = inputsOf(active, specVersionOf(facts.input.stack), 'infrastructure')
  const isCheck = active.spec.reason === 'DriftCheck' && areApplied(activeInputs, record.applied)
  if (isAdHocRun(active) || (isCheck && conditions.ready.status === 'True')) return conditions
  if (isViolatingPolicy(active)) return policyViolation(active)
  // A Stack stays Stalled during automatic retries for a missing engine, but not during a Run that a user requested.
  if (conditions.stalled && (!isFromRuns(outlook) || active.spec.reason === 'Retry')) return conditions
  const retry = (record.failures ?? 0) > 0 && record.lastRun ? ` (retry ${record.failures} of ${settings.retryLimit})` : ''
  const isOutdated = inputs !== undefined && !sameInputs(activeInputs, inputs)
  const following = isOutdated ? `. A Run for ${formatChange(activeInputs, inputs)} follows` : ''
  return reconcilingCondition('Progressing', `${formatActiveRun(active)}${retry}${following}`)
}

/** True for a Run that no worker may get, until the Stack or the policy of its Tenant or its WorkerPool changes. */
const isViolatingPolicy = (active: Run): boolean => phaseOf(active) === 'Queued' && active.status?.reason === 'PolicyViolation'

const policyViolation = (active: Run): StackConditions => stalledCondition('PolicyViolation', formatActiveRun(active))

/** True when an outlook follows from earlier Runs, and not from the Stack, its dependencies or its source. */
function isFromRuns({ kind }: Outlook): boolean {
  switch (kind) {
    case 'run':
    case 'inSync':
    case 'awaitApproval':
    case 'poisoned':
    case 'canceled':
    case 'notRetryable':
    case 'retriesExhausted':
      return true
    default:
      return false
  }
}

function heldConditions(facts: StackFacts, { planned, by }: Extract<Outlook, { kind: 'held' }>): StackConditions {
  const conditions = plannedConditions(facts, planned)
  const isReady = conditions.ready.status === 'True'
  if (by === 'revision') {
    const error = sourceError(facts.input)
    return error && !isReady ? retryingSource(error) : withSourceError(conditions, error)
  }
  if (isReady) return conditions
  if (by !== 'suspend') return reconcilingCondition(by.reason, by.message)
  return suspendedCondition(`The Stack is suspended; set spec.suspend to false to resume. ${conditions.ready.message}`)
}

/** The conditions until the planned Run is created. */
function plannedConditions(facts: StackFacts, { after, atMs }: PlannedRun): StackConditions {
  const { record, inputs, inSync, settings } = facts
  if (!after) {
    if (inSync) return appliedCondition(facts)
    if (sameInputs(record.applied, inputs)) {
      const cause = `Run ${record.applied?.overwrittenBy} did not succeed and may have applied part of other inputs`
      return reconcilingCondition('Progressing', `A Run is needed because ${cause}`)
    }
    const target = record.plan && settings.manualApproval ? 'the approved plan' : formatChange(record.applied, inputs!)
    return reconcilingCondition('Progressing', `A Run is needed for ${target}`)
  }
  const { run } = after
  const failure = formatFailure(run)
  const reason = run.status?.reason ?? 'RunFailed'
  switch (after.kind) {
    case 'lost': {
      const { name } = run.metadata
      if (after.count < lostRunLimit) {
        return isDrained(run)
          ? reconcilingCondition('RunInterrupted', `Run ${name} was interrupted because its worker was stopped`)
          : reconcilingCondition('RunLost', `Run ${name} was lost`)
      }
      const lost = `The last ${after.count} Runs were lost, most recently ${name}`
      return reconcilingCondition('RunLost', `${lost}. Next attempt at ${formatTime(atMs)}`)
    }
    case 'planOutdated':
      return reconcilingCondition(reason, failure)
    case 'engineNotFound':
      return stalledCondition(reason, `${failure}. Next attempt at ${formatTime(atMs)}`)
    case 'failed': {
      const retry = `Retry ${Math.max(1, record.failures ?? 0)} of ${settings.retryLimit}`
      return reconcilingCondition(reason, `${failure}. ${retry} at ${formatTime(atMs)}`)
    }
  }
}

function awaitingApproval(facts: StackFacts): StackConditions {
  const detail = { reason: 'AwaitingApproval', message: formatAwaitingApproval(facts) }
  return facts.inSync
    ? { ...appliedCondition(facts), awaitingApproval: detail }
    : { ready: { status: 'False', ...detail }, awaitingApproval: detail }
}

function stalled({ input }: StackFacts, reason: string, message: string): StackConditions {
  return withSourceError(stalledCondition(reason, message), sourceError(input))
}

/** What differs between the inputs of the last Run and the current ones: `generation 4`, `revision 1f9c…` or `changed inputs`. */
function formatChange(previous: Inputs | undefined, inputs: Inputs): string {
  if (!previous || previous.generation !== inputs.generation) return `generation ${inputs.generation}`
  return previous.revision !== inputs.revision ? `revision ${formatDigest(inputs.revision)}` : 'changed inputs'
}

function appliedCondition({ input, record, runs }: StackFacts): StackConditions {
  const run = runs.find(({ metadata }) => metadata.name === record.applied?.runName)
  if (run) {
    const { plan } = run.status ?? {}
    if (!hasChanges(run)) return readyCondition('Applied', 'In sync: the last Run found no changes')
    return readyCondition('Applied', plan ? `Applied: ${formatApplied(plan)}` : 'Applied')
  }
  // The Run is no longer in the history: its message is retained.
  const previous = findCondition(input.stack.status?.conditions, 'Ready')
  const message =
    previous?.reason === 'Applied' ? previous.message.split(sourceErrorMark, 1)[0]! : `Applied by Run ${record.applied?.runName}`
  return readyCondition('Applied', message)
}

export function formatAwaitingApproval({ input, record, runs }: StackFacts): string {
  const plan = record.plan!
  const { name, namespace } = input.stack.metadata
  return `${formatVoidApproval(record.approval, plan, runs)}Plan ${formatDigest(plan.digest)} of Run ${plan.runName} awaits approval: ${formatPlanned(plan)}. Approve it with: oarlock approve ${name} -n ${namespace}`
}

/** Why the last approval does not count; empty if its plan was applied, or if there is none. */
function formatVoidApproval(approval: Approval | undefined, plan: NonNullable<StackRecord['plan']>, runs: readonly Run[]): string {
  if (!approval) return ''
  const by = approval.user === undefined ? '' : ` by user ${JSON.stringify(approval.user)}`
  if (approval.runName === plan.runName) return `The approval${by} has expired. `
  // The annotation of an applied plan is not removed: that plan is done, not outdated.
  const isApplied = runs.some(run => run.spec.approvedPlan?.digest === approval.digest && phaseOf(run) === 'Succeeded')
  if (isApplied) return ''
  return approval.digest === plan.digest
    ? 'The approval of an earlier plan with the same digest is void. '
    : `The approved plan ${formatDigest(approval.digest)} is outdated. `
}

function formatRetriesExhausted(limit: number): string {
  if (limit === 0) return 'It is not retried because spec.retry.limit is 0'
  return limit === 1 ? 'The only retry failed' : `All ${limit} retries failed`
}

function withSourceError(conditions: StackConditions, error: RevisionError | undefined): StackConditions {
  if (!error) return conditions
  const message = `${conditions.ready.message}${sourceErrorMark}${truncateMessage(error.message)}`
  return { ...conditions, ready: { ...conditions.ready, message } }
}

function retryingSource({ reason, message }: RevisionError): StackConditions {
  return reconcilingCondition(reason, `${truncateMessage(message)}. Retrying`)
}
