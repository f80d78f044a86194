import { annotations, isEnded, isMutating, phaseOf, type Run, type RunType, type Stack, type StackStatus } from '../../api/index.ts'
import type { Condition } from '../../kubernetes/object/index.ts'
import { recordApproval, voidApprovalEvents } from './approval.ts'
import type { StackEvent } from './conditions.ts'
import type { StackInput } from './decision.ts'
import { pendingDestroyPlan } from './destroy-plan.ts'
import { foldRuns, observeRun, type RunHistory, type StackRecord } from './fold-runs.ts'
import { areApplied, type Inputs, inputsOf, type SpecVersion, sameInputs, specVersionOf } from './inputs.ts'
import { isAdHocRun, isLifecycleRun, ownRuns } from './run-status.ts'
import { type Settings, settingsOf } from './settings.ts'

/** The annotation `oarlock.dev/requested-run` of a Stack, before a Run handles it. */
export type RunRequest = { readonly value: string; readonly type: 'Plan' | 'Apply' | 'Refresh'; readonly planMode?: 'Destroy' }

/** What is known about a Stack: the input of the decision and what follows from it. Nothing changes it. */
export type StackFacts = {
  readonly input: StackInput
  readonly settings: Settings
  readonly isDeleting: boolean
  /** The Stack's own, oldest first. */
  readonly runs: readonly Run[]
  readonly active: Run | undefined
  /** The ended Run that determines the next one ({@link isLifecycleRun}). */
  readonly last: Run | undefined
  /** What the Runs left behind, without what a change of the Stack made invalid. */
  readonly record: StackRecord
  /** The condition Drifted. */
  readonly drifted: Condition | undefined
  /** The ends of Runs that are recorded now. */
  readonly events: readonly StackEvent[]
  /** What the next Run would use; undefined while the source is not resolved. */
  readonly inputs: Inputs | undefined
  /** True when these inputs are applied completely. */
  readonly inSync: boolean
  readonly request: RunRequest | undefined
}

/** Folds a Stack and its Runs into what is known about it. */
export function foldFacts(input: StackInput): StackFacts {
  const { stack, nowMs } = input
  const settings = settingsOf(stack.spec, input.approvalPolicy)
  const runs = ownRuns(input.runs, stack.metadata.uid)
  const active = runs.find(run => !isEnded(run))
  const last = runs.findLast(run => isEnded(run) && isLifecycleRun(run))
  const history = withAcceptedRestore(stack, foldRuns(stack, runs, nowMs))
  const isDeleting = stack.metadata.deletionTimestamp !== undefined
  const { record, drifted, inputs } = isDeleting
    ? { ...history, ...factsOfDeletion(input, settings, runs, history.record) }
    : withoutOutdated(input, settings, runs, last, history)
  const request = pendingRequest(stack, record)
  const inSync = areApplied(inputs, record.applied)
  const events = [...history.events, ...voidApprovalEvents(stack, record)]
  const facts = { input, settings, isDeleting, runs, active, last, record, drifted, events, inputs, inSync, request }
  return request && active && isHandledBy(active, request, facts)
    ? { ...facts, request: undefined, record: { ...record, handledRequest: request.value } }
    : facts
}

/** The history without `restored`, once a user has accepted exactly that restore. */
function withAcceptedRestore({ metadata }: Stack, history: RunHistory): RunHistory {
  const { restored, ...record } = history.record
  const isAccepted = restored !== undefined && metadata.annotations?.[annotations.acceptedRestore] === restored.at
  return isAccepted ? { ...history, record } : history
}

/** The facts once `run` is created and handles `request`. */
export function foldCreatedRun(facts: StackFacts, run: Run, request: string | undefined): StackFacts {
  const { name } = run.metadata
  const { type, reason, epoch } = run.spec
  const observed = observeRun(facts.record, run, facts.runs.findLast(isLifecycleRun))
  const record: StackRecord = {
    ...observed,
    lastRunNumber: epoch,
    lastRun: { name, type, phase: phaseOf(run), reason },
    handledRequest: request ?? observed.handledRequest,
  }
  return { ...facts, runs: [...facts.runs, run], active: run, record, request: pendingRequest(facts.input.stack, record) }
}

/** The request in the annotation `oarlock.dev/requested-run`, unless it was handled already. */
export function pendingRequest(stack: Stack, status: Pick<StackStatus, 'handledRequest'>): RunRequest | undefined {
  const value = stack.metadata.annotations?.[annotations.requestedRun]
  if (!value || value === status.handledRequest) return undefined
  const [kind] = value.split(':', 1)
  if (kind === 'plan-destroy') return { value, type: 'Plan', planMode: 'Destroy' }
  return { value, type: kind === 'plan' ? 'Plan' : kind === 'refresh' ? 'Refresh' : 'Apply' }
}

/** The error of the source, if its revision could not be resolved. */
export function sourceError({ revision }: StackInput) {
  return typeof revision === 'object' ? revision.error : undefined
}

/** Inputs, and the history without the plan, failures and drift that they or a change of the spec made invalid. */
function withoutOutdated(
  input: StackInput,
  settings: Settings,
  runs: readonly Run[],
  last: Run | undefined,
  { record, drifted }: RunHistory,
): Pick<StackFacts, 'record' | 'drifted' | 'inputs'> {
  const current = specVersionOf(input.stack)
  const lastRun = runs.findLast(run => !isAdHocRun(run))
  const previous = lastRun ? inputsOf(lastRun, current, 'infrastructure') : record.applied
  const known = currentInputs(input, previous ?? record.plan)
  const plan = settings.manualApproval && (!known || sameInputs(record.plan, known)) ? record.plan : undefined
  // A revision that only a plan records is not known without it.
  const inputs = previous || plan || typeof input.revision === 'string' ? known : undefined
  const lastInputs = last && inputsOf(last, current, 'execution')
  const hasNewInputs = inputs && last && last.spec.type !== 'Destroy' && !sameInputs(lastInputs, inputs)
  return {
    inputs,
    drifted: drifted && isDriftChecked(settings, record, drifted) ? drifted : undefined,
    record: {
      ...record,
      plan,
      approval: recordApproval(input, { plan, approval: record.approval }),
      failures: hasNewInputs ? undefined : record.failures,
      sameFailure: failuresOfSpec(record.sameFailure, current, last),
    },
  }
}

/** The count of equal failures, if they were failures of the current spec. */
function failuresOfSpec(counted: StackRecord['sameFailure'], current: SpecVersion, last: Run | undefined): StackRecord['sameFailure'] {
  if (!counted || counted.generation === current.generation) return counted
  const isOfLast = last?.spec.stackRef.generation === counted.generation
  const isSame = isOfLast && inputsOf(last, current, 'execution').generation === current.generation
  return isSame ? { ...counted, generation: current.generation } : undefined
}

/**
 * The current inputs. After a restart the revision is unknown at first: then `previous` counts if the Stack has not changed
 * since, so that a restart writes nothing to a thousand idle Stacks.
 */
function currentInputs({ stack, revision, inputsDigest }: StackInput, previous: Inputs | undefined): Inputs | undefined {
  const generation = generationOf(stack)
  if (typeof revision === 'string') return { generation, revision, inputsDigest }
  return previous?.generation === generation ? { generation, revision: previous.revision, inputsDigest } : undefined
}

/** The inputs of a Destroy, and the record with the plan of it that awaits approval. */
function factsOfDeletion(
  input: StackInput,
  settings: Settings,
  runs: readonly Run[],
  record: StackRecord,
): Pick<StackFacts, 'record' | 'inputs'> {
  const inputs = destroyInputs(input, runs, record)
  const plan = settings.manualApproval && inputs ? pendingDestroyPlan(runs, inputs, specVersionOf(input.stack)) : undefined
  return { inputs, record: { ...record, plan, approval: recordApproval(input, { plan, approval: record.approval }) } }
}

/** A Destroy uses the last known revision when the source cannot be resolved. */
function destroyInputs({ stack, revision, inputsDigest }: StackInput, runs: readonly Run[], record: StackRecord): Inputs | undefined {
  const known = record.applied?.revision ?? runs.findLast(run => isMutating(run.spec.type))?.spec.revision
  const current = typeof revision === 'string' ? revision : known
  return current === undefined ? undefined : { generation: generationOf(stack), revision: current, inputsDigest }
}

function isDriftChecked({ drift, intervalMs }: Settings, { applied }: StackRecord, drifted: Condition): boolean {
  return drift !== 'Off' && applied !== undefined && (drifted.status === 'True' || intervalMs !== undefined)
}

/** True when a requested Run of the same type is still queued: it handles a second request too. */
function isHandledBy(
  { spec }: Run,
  request: RunRequest,
  { input, settings, inputs, isDeleting }: Pick<StackFacts, 'input' | 'settings' | 'inputs' | 'isDeleting'>,
): boolean {
  const isQueued = spec.workerName === undefined && !spec.cancel
  const isCurrent = typeof input.revision === 'string' && sameInputs(inputsOf({ spec }, specVersionOf(input.stack), 'execution'), inputs)
  return !isDeleting && isQueued && isCurrent && spec.reason === 'Requested' && isTypeOf(request, spec, settings)
}

/** The type of a Run for changed inputs. */
export function changeType({ manualApproval }: Settings): 'Plan' | 'Apply' {
  return manualApproval ? 'Plan' : 'Apply'
}

/** The type of the Run that handles a request. */
export function requestedType({ type }: RunRequest, settings: Settings): RunType {
  return type === 'Apply' ? changeType(settings) : type
}

/** True when a Run is of the kind that the request asks for. */
export function isTypeOf(request: RunRequest, { type, planMode }: Pick<Run['spec'], 'type' | 'planMode'>, settings: Settings): boolean {
  return requestedType(request, settings) === type && request.planMode === planMode
}

function generationOf({ metadata }: Stack): number {
  return metadata.generation ?? 1
}
