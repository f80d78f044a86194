import { isEnded, isMutating, type Run } from '../../api/index.ts'
import { equalJson, findCondition, rfc3339 } from '../../kubernetes/object/index.ts'
import { aggregateRuns } from './aggregate-runs.ts'
import { pendingRequest } from './choose-run.ts'
import { coalesceProgress } from './coalesce-progress.ts'
import { stackFinalizer, supersedeAfterMs } from './constants.ts'
import { createRun } from './create-run.ts'
import { decideDeletion } from './decide-deletion.ts'
import {
  completeDecision,
  currentInputs,
  type DecisionActions,
  type DecisionContext,
  type NextStep,
  type StackDecision,
  type StackInput,
} from './decision.ts'
import { type Inputs, inputsOf, sameInputs } from './inputs.ts'
import { conditionsWhileActive, findNextStep } from './next-step.ts'
import { resetOutdatedFailures } from './repeated-failure.ts'
import { isAdHocRun, isLifecycleRun, ownRuns } from './run-status.ts'
import { settingsOf } from './settings.ts'

/**
 * Decides what a Stack needs next and what its status reports. It is idempotent: deciding again on its own outcome changes
 * nothing. At most one Run of a Stack is active at any time, so at most one may write (invariant 1), and each has a number,
 * its epoch, higher than all before (invariant 3).
 */
export function decideStack(input: StackInput): StackDecision {
  const decision = decide(input)
  const coalesced = coalesceProgress(input)
  if (!coalesced) return decision
  const withoutProgress = decide({ ...input, runs: coalesced.runs })
  const { status, requeueAfterMs = Infinity, deleteRuns, events, ...actions } = withoutProgress
  const isOnlyProgress =
    Object.keys(actions).length + deleteRuns.length + events.length === 0 && equalJson(status, input.stack.status ?? {})
  return isOnlyProgress ? { ...withoutProgress, requeueAfterMs: Math.min(requeueAfterMs, coalesced.requeueAfterMs) } : decision
}

function decide(input: StackInput): StackDecision {
  const { stack, nowMs } = input
  const runs = ownRuns(input.runs, stack.metadata.uid)
  const { status, events } = aggregateRuns(stack, runs, nowMs)
  const context: DecisionContext = { input, runs, settings: settingsOf(stack.spec), status, events }
  const hasFinalizer = stack.metadata.finalizers?.includes(stackFinalizer) ?? false

  if (!stack.metadata.deletionTimestamp) return { ...reconcileLive(context), ...(!hasFinalizer && { addFinalizer: true }) }
  return hasFinalizer ? reconcileDeleted(context) : { status: stack.status ?? {}, deleteRuns: [], events: [] }
}

/** Decides for a Stack that is not being deleted. */
function reconcileLive(context: DecisionContext): StackDecision {
  const { input, runs, settings, status } = context
  const { nowMs } = input
  const known = currentInputs(context)
  if (!settings.manualApproval || (known && !sameInputs(status.plan, known))) delete status.plan
  // Computed again: the inputs may have been known only from the plan that was dropped.
  const inputs = currentInputs(context)
  resetOutdatedFailures(status, input.stack.metadata.generation ?? 1)
  const last = runs.findLast(run => isEnded(run) && isLifecycleRun(run))
  if (inputs && last && last.spec.type !== 'Destroy' && !sameInputs(inputsOf(last), inputs)) delete status.failures
  dropOutdatedDrift(context)

  const nextStep = findNextStep(context, inputs)
  const active = runs.find(run => !isEnded(run))
  const { planned } = nextStep
  delete status.nextRunAt
  if (active) return whileRunActive(context, active, nextStep, inputs)
  if (!planned || !nextStep.inputs) return completeDecision(context, nextStep.conditions)
  if (planned.atMs > nowMs) {
    status.nextRunAt = rfc3339(planned.atMs)
    return completeDecision(context, nextStep.conditions, { requeueAfterMs: planned.atMs - nowMs })
  }
  return createRun(context, planned, nextStep.inputs)
}

/** While a Run is active nothing happens, unless a change has made it outdated: then it is canceled or superseded. */
function whileRunActive(context: DecisionContext, active: Run, nextStep: NextStep, inputs: Inputs | undefined): StackDecision {
  const { input, settings, status } = context
  const { nowMs, stack } = input
  const wait = (actions?: DecisionActions) => completeDecision(context, conditionsWhileActive(context, active, nextStep, inputs), actions)
  const isKnown = inputs !== undefined && typeof input.revision === 'string'
  if (!isKnown || active.spec.type === 'Destroy' || active.spec.cancel) return wait()
  const isOutdated = !sameInputs(inputsOf(active), inputs)
  if (active.spec.workerName !== undefined) {
    if (!isOutdated || !settings.cancelOutdated || isAdHocRun(active)) return wait()
    return wait({ cancelRun: { name: active.metadata.name, reason: 'Outdated' } })
  }

  const request = pendingRequest(stack, status)
  if (!isOutdated) {
    if (!request) return wait()
    const type = request.type === 'Apply' ? (settings.manualApproval ? 'Plan' : 'Apply') : request.type
    if (active.spec.type !== type) return wait()
    if (active.spec.reason === 'Requested') {
      // A second request while the Run waits: it handles both.
      status.handledRequest = request.value
      return completeDecision(context, conditionsWhileActive(context, active, findNextStep(context, inputs), inputs))
    }
  }
  const superseded: Run = { ...active, status: { phase: 'Canceled', reason: 'Superseded' } }
  const next: DecisionContext = { ...context, runs: context.runs.map(run => (run === active ? superseded : run)) }
  const { planned } = findNextStep(next, inputs)
  if (!planned || planned.atMs > nowMs) return wait()
  const remainingMs = Date.parse(active.metadata.creationTimestamp) + supersedeAfterMs - nowMs
  if (remainingMs > 0) return wait({ requeueAfterMs: remainingMs })
  return createRun(next, planned, inputs, active)
}

/** Decides for a Stack that is being deleted and still has the finalizer. */
function reconcileDeleted(context: DecisionContext): StackDecision {
  const { input, runs, settings, status } = context
  const { stack, nowMs } = input
  const inputs = destroyInputs(context)
  const cycle = new Set(input.cycle ?? [])
  const dependents = input.dependents.filter(name => !cycle.has(name))
  const step = decideDeletion({ stack, status, runs, settings, inputs, dependents, nowMs })
  delete status.nextRunAt
  switch (step.kind) {
    case 'release':
      return { status: stack.status ?? {}, deleteRuns: [], events: context.events, removeFinalizer: true }
    case 'wait':
      return completeDecision(context, step.conditions, step.cancelRun === undefined ? {} : { cancelRun: { name: step.cancelRun } })
    case 'run': {
      const { planned } = step
      if (planned.atMs <= nowMs && inputs) return createRun(context, planned, inputs)
      status.nextRunAt = rfc3339(planned.atMs)
      return completeDecision(context, step.conditions, { requeueAfterMs: planned.atMs - nowMs })
    }
  }
}

function destroyInputs({ input, runs, status }: DecisionContext): Inputs | undefined {
  const { stack, inputsDigest } = input
  const known = status.applied?.revision ?? runs.findLast(run => isMutating(run.spec.type))?.spec.revision
  const revision = typeof input.revision === 'string' ? input.revision : known
  return revision === undefined ? undefined : { generation: stack.metadata.generation ?? 1, revision, inputsDigest }
}

/** Removes the condition Drifted where drift is not checked (any more). */
function dropOutdatedDrift({ status, settings }: DecisionContext): void {
  const drifted = findCondition(status.conditions, 'Drifted')
  if (!drifted) return
  const isChecked =
    settings.drift !== 'Off' && status.applied !== undefined && (drifted.status === 'True' || settings.intervalMs !== undefined)
  if (!isChecked) status.conditions = status.conditions?.filter(condition => condition !== drifted)
}
