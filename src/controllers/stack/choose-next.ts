import { isMutating, type Run, stackFinalizer } from '../../api/index.ts'
import { chooseDeletion, type DeletionChoice } from './choose-deletion.ts'
import { chooseDestroyPlan, chooseRun, type PlannedRun, type RunChoice } from './choose-run.ts'
import { supersedeAfterMs } from './constants.ts'
import type { RevisionError, StateCheck, UserLock } from './decision.ts'
import { type DependencyGate, dependencyGate } from './dependencies.ts'
import { foldCreatedRun, isKindOf, type StackFacts, sourceError } from './facts.ts'
import { type Inputs, inputsOf, sameInputs, specVersionOf } from './inputs.ts'
import { inputsFor, newRun } from './new-run.ts'
import { isAdHocRun, isDestroyPlan } from './run-status.ts'

/** What is next for a Stack that is not being deleted, as if no Run of it were active. */
export type Outlook =
  | RunChoice
  | { readonly kind: 'invalidSpec' | 'dependencyCycle' | 'inputNotFound' | 'resolvingSource' }
  | { readonly kind: 'sourceError'; readonly error: RevisionError }
  /** The state is missing, or older than the last Run: a Run would create resources again. */
  | { readonly kind: 'stateError'; readonly error: StateError }
  /** The Stack is from a backup, and no user has reviewed it. */
  | { readonly kind: 'restored' }
  /** A Run is needed but must not be created now. */
  | { readonly kind: 'held'; readonly planned: PlannedRun; readonly by: 'suspend' | 'revision' | UserLock | DependencyGate }

export type StateError = NonNullable<StateCheck['error']>

export type NextStep =
  /** The Stack is being deleted and does not have Oarlock's finalizer: it belongs to others. */
  | { readonly kind: 'none' }
  /** Nothing is left to destroy: the finalizer can be removed. */
  | { readonly kind: 'release' }
  /** No Run is active, and none is to be created now. */
  | { readonly kind: 'idle'; readonly outlook: Outlook }
  | { readonly kind: 'deleting'; readonly choice: DeletionChoice }
  | WaitStep
  | CreateStep

/** A Run is active. */
export type WaitStep = {
  readonly kind: 'wait'
  readonly active: Run
  /** What follows it; undefined when the deletion of the Stack does. */
  readonly outlook: Outlook | undefined
  readonly cancel?: { readonly reason: 'Outdated' | 'StackDeleted' }
  readonly requeueAfterMs?: number
}

export type CreateStep = {
  readonly kind: 'create'
  readonly run: Run
  /** The queued Run that it replaces. */
  readonly superseded: Run | undefined
  /** What is known and what follows once it exists. */
  readonly after: { readonly facts: StackFacts; readonly outlook: Outlook | undefined }
}

/** Chooses what is next for a Stack. */
export function chooseNext(facts: StackFacts): NextStep {
  const { active, input } = facts
  if (facts.isDeleting) return chooseNextOfDeletion(facts)
  const outlook = chooseOutlook(facts)
  if (active) return chooseWhileActive(facts, active, outlook)
  const inputs = outlook.kind === 'run' ? inputsFor(facts, outlook.planned) : undefined
  return outlook.kind === 'run' && outlook.planned.atMs <= input.nowMs && inputs
    ? create(facts, outlook.planned, inputs)
    : { kind: 'idle', outlook }
}

/** First the active Run of a deleted Stack ends: a Plan, a Run without a worker and an outdated Destroy without one are canceled, an Apply finishes. */
function chooseNextOfDeletion(facts: StackFacts): NextStep {
  const { active, inputs, input, settings } = facts
  if (!input.stack.metadata.finalizers?.includes(stackFinalizer)) return { kind: 'none' }
  if (active) {
    const { type, workerName, cancel, stackRef, approvedPlan } = active.spec
    const isDestruction = type === 'Destroy' || isDestroyPlan(active)
    // A Destroy that cannot be assigned, for example because of a policy, is replaced when the Stack was changed.
    const isChanged = inputs !== undefined && stackRef.generation !== inputs.generation
    // One that was queued before approval was required.
    const isUnapproved = type === 'Destroy' && settings.manualApproval && !approvedPlan
    const isOutdated = isDestruction && (isChanged || isUnapproved)
    const isCancelable = (type === 'Plan' && !isDestruction) || (workerName === undefined && (!isDestruction || isOutdated))
    return {
      kind: 'wait',
      active,
      outlook: undefined,
      ...(isCancelable && !cancel && { cancel: { reason: isOutdated ? 'Outdated' : 'StackDeleted' } }),
    }
  }
  const choice = chooseDeletion(facts)
  if (!choice) return { kind: 'release' }
  return choice.kind === 'destroy' && choice.planned.atMs <= input.nowMs && inputs
    ? create(facts, choice.planned, inputs)
    : { kind: 'deleting', choice }
}

/** While a Run is active nothing happens, unless a change has made it outdated: then it is canceled or superseded. */
function chooseWhileActive(facts: StackFacts, active: Run, outlook: Outlook): NextStep {
  const { input, settings, request } = facts
  const wait: WaitStep = { kind: 'wait', active, outlook }
  const isOfDestruction = isDestroyPlan(active)
  const present = { inputs: facts.inputs, version: specVersionOf(input.stack), configuration: undefined }
  const { inputs, version, configuration } = isOfDestruction ? (facts.destruction() ?? { ...present, inputs: undefined }) : present
  const isKnown = inputs !== undefined && (isOfDestruction || typeof input.revision === 'string')
  if (!isKnown || active.spec.type === 'Destroy' || active.spec.cancel) return wait
  // One that was queued before the namespace required approval.
  const isUnapproved = settings.manualApproval && isMutating(active.spec.type) && !active.spec.approvedPlan
  const scope = active.spec.workerName === undefined ? 'execution' : 'infrastructure'
  const isOutdated = isUnapproved || active.spec.configuration !== configuration || !sameInputs(inputsOf(active, version, scope), inputs)
  if (active.spec.workerName !== undefined) {
    const isCanceled = isOutdated && settings.cancelOutdated && !isAdHocRun(active)
    return isCanceled ? { ...wait, cancel: { reason: 'Outdated' } } : wait
  }
  const isRequested = request !== undefined && isKindOf(request, active.spec, settings)
  return isOutdated || isRequested ? supersede(facts, active, wait) : wait
}

function supersede(facts: StackFacts, active: Run, wait: WaitStep): NextStep {
  const { input, runs } = facts
  const superseded: Run = { ...active, status: { phase: 'Canceled', reason: 'Superseded' } }
  const idle: StackFacts = { ...facts, runs: runs.map(run => (run === active ? superseded : run)), active: undefined }
  const outlook = chooseOutlook(idle)
  if (outlook.kind !== 'run' || outlook.planned.atMs > input.nowMs) return wait
  const inputs = inputsFor(idle, outlook.planned)
  if (!inputs) return wait
  const remainingMs = Date.parse(active.metadata.creationTimestamp) + supersedeAfterMs - input.nowMs
  return remainingMs > 0 ? { ...wait, requeueAfterMs: remainingMs } : create(idle, outlook.planned, inputs, superseded)
}

function create(facts: StackFacts, planned: PlannedRun, inputs: Inputs, superseded?: Run): CreateStep {
  const run = newRun(facts, planned, inputs, superseded)
  const after = foldCreatedRun(facts, run, planned.request)
  return { kind: 'create', run, superseded, after: { facts: after, outlook: facts.isDeleting ? undefined : chooseOutlook(after) } }
}

function chooseOutlook(facts: StackFacts): Outlook {
  const { input, inputs, settings, record } = facts
  const error = sourceError(input)
  if (input.state?.error) return { kind: 'stateError', error: input.state.error }
  const destroyPlan = chooseDestroyPlan(facts)
  const destruction = destroyPlan && facts.destruction()
  if (destroyPlan && destruction) {
    const planned = destroyPlan
    if (settings.suspended) return { kind: 'held', planned, by: 'suspend' }
    if (destruction.isResolved) return { kind: 'run', planned }
    return error && !error.retryable ? { kind: 'sourceError', error } : { kind: 'held', planned, by: 'revision' }
  }
  if (input.specErrors.length > 0) return { kind: 'invalidSpec' }
  if (input.cycle) return { kind: 'dependencyCycle' }
  if (input.inputErrors?.length) return { kind: 'inputNotFound' }
  if (!inputs && record.restored) return { kind: 'restored' }
  if (error && !(error.retryable && inputs)) return { kind: 'sourceError', error }
  if (!inputs) return { kind: 'resolvingSource' }

  const choice = chooseRun(facts, inputs)
  if (record.restored) return !settings.suspended && isReview(choice, input) ? choice : { kind: 'restored' }
  if (choice.kind !== 'run') return choice
  const { planned } = choice
  if (settings.suspended) return { kind: 'held', planned, by: 'suspend' }
  // The revision of the last Run shows whether anything changed, but no Run is started with it.
  if (typeof input.revision !== 'string') return { kind: 'held', planned, by: 'revision' }
  // A drift check uses the applied inputs, so it does not wait for dependencies.
  const gate = planned.reason === 'DriftCheck' ? undefined : dependencyGate(input.stack.spec, input.dependencies)
  if (gate) return { kind: 'held', planned, by: gate }
  // A Plan takes no lock.
  const lock = isMutating(planned.type) ? input.state?.lock : undefined
  return lock ? { kind: 'held', planned, by: lock } : choice
}

/** A Plan that a user requested shows what differs from the backup. It does not wait for dependencies, which are from the backup too. */
function isReview(choice: RunChoice, { revision }: StackFacts['input']): boolean {
  return choice.kind === 'run' && choice.planned.type === 'Plan' && choice.planned.reason === 'Requested' && typeof revision === 'string'
}
