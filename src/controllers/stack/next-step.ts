import { annotations, type Run, type Stack, type StackStatus } from '../../api/index.ts'
import { findCondition } from '../../kubernetes/object/index.ts'
import { chooseRun, type RunChoice } from './choose-run.ts'
import { readyCondition, reconcilingCondition, type StackConditions, stalledCondition, suspendedCondition } from './conditions.ts'
import type { DecisionContext, NextStep, RevisionError } from './decision.ts'
import { dependencyGate } from './dependencies.ts'
import { type Inputs, inputsOf, sameInputs } from './inputs.ts'
import { formatActiveRun, formatApplied, formatCauses, formatDigest, formatPlanned, truncateMessage } from './messages.ts'
import { hasChanges, isAdHocRun, phaseOf } from './run-status.ts'

const sourceErrorMark = '. The source cannot be resolved at present: '

/** The next step of a Stack that is not being deleted, as if no Run of it were active. */
export function findNextStep(context: DecisionContext, inputs: Inputs | undefined): NextStep {
  const { input, runs, settings, status } = context
  const { stack, nowMs, jitter, revision } = input
  const error = typeof revision === 'object' ? revision.error : undefined
  if (input.specErrors.length > 0) return { conditions: stalledCondition('InvalidSpec', formatCauses(input.specErrors)) }
  if (input.cycle) {
    const fields = 'spec.dependsOn or spec.variablesFrom[].stackRef'
    const message = `Stacks form a dependency cycle: ${input.cycle.join(' → ')}. Remove one of these references from ${fields}`
    return { conditions: stalledCondition('DependencyCycle', message) }
  }
  if (input.inputErrors?.length) return { conditions: reconcilingCondition('InputNotFound', formatCauses(input.inputErrors)) }
  if (error && !error.retryable) return { conditions: stalledCondition(error.reason, truncateMessage(error.message)) }
  if (!inputs) {
    if (error) return { conditions: retryingSource(error) }
    return { conditions: reconcilingCondition('ResolvingSource', 'The revision of the source is being resolved') }
  }

  const choice = chooseRun({ stack, status, runs, settings, inputs, nowMs, jitter })
  const conditions = conditionsOf(context, inputs, choice)
  const isReady = conditions.ready.status === 'True'
  if (choice.kind !== 'run') return { conditions: withSourceError(conditions, error), isFromRuns: true }
  const { planned } = choice
  if (settings.suspended) {
    if (isReady) return { conditions }
    const message = `The Stack is suspended; set spec.suspend to false to resume. ${conditions.ready.message}`
    return { conditions: suspendedCondition(message) }
  }
  if (typeof revision !== 'string') {
    // The revision of the last Run shows that nothing changed, but no Run is started with it.
    return { conditions: !error || isReady ? withSourceError(conditions, error) : retryingSource(error) }
  }
  // A drift check uses the applied inputs, so it does not wait for dependencies.
  const gate = planned.reason === 'DriftCheck' ? undefined : dependencyGate(stack.spec, input.dependencies)
  if (gate) return { conditions: isReady ? conditions : reconcilingCondition(gate.reason, gate.message) }
  return { conditions, planned, inputs, isFromRuns: true }
}

/** The conditions while `active` runs. */
export function conditionsWhileActive(
  { input, status, settings }: DecisionContext,
  active: Run,
  nextStep: NextStep,
  inputs: Inputs | undefined,
): StackConditions {
  const isCheck = active.spec.reason === 'DriftCheck' && sameInputs(status.applied, inputsOf(active))
  if (isAdHocRun(active) || (isCheck && nextStep.conditions.ready.status === 'True')) return nextStep.conditions
  // A Stack stays Stalled during automatic retries for a missing engine, but not during a Run that a user requested.
  if (nextStep.conditions.stalled && (!nextStep.isFromRuns || active.spec.reason === 'Retry')) return nextStep.conditions
  const retry = (status.failures ?? 0) > 0 && status.lastRun ? ` (retry ${status.failures} of ${settings.retryLimit})` : ''
  const isOutdated = inputs !== undefined && !sameInputs(inputsOf(active), inputs) && !input.stack.metadata.deletionTimestamp
  const following = isOutdated ? `. A Run for ${formatChange(inputsOf(active), inputs)} follows` : ''
  return reconcilingCondition('Progressing', `${formatActiveRun(active)}${retry}${following}`)
}

function conditionsOf({ input, runs, settings, status }: DecisionContext, inputs: Inputs, choice: RunChoice): StackConditions {
  const { stack } = input
  const ready = sameInputs(status.applied, inputs) ? readyAfterApply(stack, status, runs) : undefined
  switch (choice.kind) {
    case 'inSync':
      return ready!
    case 'stalled':
      return stalledCondition(choice.reason, choice.message)
    case 'awaitApproval': {
      const detail = { reason: 'AwaitingApproval', message: formatAwaitingApproval(stack, status, runs) }
      return ready ? { ...ready, awaitingApproval: detail } : { ready: { status: 'False', ...detail }, awaitingApproval: detail }
    }
    case 'run': {
      const { notReady } = choice.planned
      if (notReady) return (notReady.isStalled ? stalledCondition : reconcilingCondition)(notReady.reason, notReady.message)
      if (ready) return ready
      const target = status.plan && settings.manualApproval ? 'the approved plan' : formatChange(status.applied, inputs)
      return reconcilingCondition('Progressing', `A Run is needed for ${target}`)
    }
  }
}

/** What differs between the inputs of the last Run and the current ones: `generation 4`, `revision 1f9c…` or `changed inputs`. */
function formatChange(previous: Inputs | undefined, inputs: Inputs): string {
  if (!previous || previous.generation !== inputs.generation) return `generation ${inputs.generation}`
  return previous.revision !== inputs.revision ? `revision ${formatDigest(inputs.revision)}` : 'changed inputs'
}

function readyAfterApply(stack: Stack, status: StackStatus, runs: readonly Run[]): StackConditions {
  const run = runs.find(({ metadata }) => metadata.name === status.applied?.runName)
  if (run) {
    const { plan } = run.status ?? {}
    if (!hasChanges(run)) return readyCondition('Applied', 'In sync: the last Run found no changes')
    return readyCondition('Applied', plan ? `Applied: ${formatApplied(plan)}` : 'Applied')
  }
  // The Run is no longer in the history: its message is retained.
  const previous = findCondition(stack.status?.conditions, 'Ready')
  const message =
    previous?.reason === 'Applied' ? previous.message.split(sourceErrorMark, 1)[0]! : `Applied by Run ${status.applied?.runName}`
  return readyCondition('Applied', message)
}

function formatAwaitingApproval(stack: Stack, status: StackStatus, runs: readonly Run[]): string {
  const plan = status.plan!
  const { name, namespace, annotations: given } = stack.metadata
  const approved = given?.[annotations.approvedPlan]
  // The annotation of an applied plan is not removed: that plan is done, not outdated.
  const isApplied = runs.some(run => run.spec.approvedPlan?.digest === approved && phaseOf(run) === 'Succeeded')
  const outdated = approved && !isApplied ? `The approved plan ${formatDigest(approved)} is outdated. ` : ''
  return `${outdated}Plan ${formatDigest(plan.digest)} of Run ${plan.runName} awaits approval: ${formatPlanned(plan)}. Approve it with: oarlock approve ${name} -n ${namespace}`
}

function withSourceError(conditions: StackConditions, error: RevisionError | undefined): StackConditions {
  if (!error) return conditions
  const message = `${conditions.ready.message}${sourceErrorMark}${truncateMessage(error.message)}`
  return { ...conditions, ready: { ...conditions.ready, message } }
}

function retryingSource({ reason, message }: RevisionError): StackConditions {
  return reconcilingCondition(reason, `${truncateMessage(message)}. Retrying`)
}
