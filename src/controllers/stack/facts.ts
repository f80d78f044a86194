import {
  annotations,
  engineOptionsProblem,
  isEnded,
  isMutating,
  parseRunRequest,
  phaseOf,
  type Run,
  type RunOptions,
  type RunSpec,
  type RunType,
  type Stack,
  type StackStatus,
} from '../../api/index.ts'
import { type Condition, equalJson } from '../../kubernetes/object/index.ts'
import { recordApproval, voidApprovalEvents } from './approval.ts'
import type { StackEvent } from './conditions.ts'
import type { StackInput } from './decision.ts'
import { pendingDestroyPlan } from './destroy-plan.ts'
import { type Destruction, type LazyDestruction, lazyDestruction } from './destruction.ts'
import { foldRuns, observeRun, type RunHistory, type StackRecord } from './fold-runs.ts'
import { areApplied, type Inputs, inputsOf, type SpecVersion, sameInputs, specVersionOf } from './inputs.ts'
import { recordRejection, voidRejectionEvents } from './rejection.ts'
import { isAdHocRun, isDestroyPlan, isLifecycleRun, ownRuns } from './run-status.ts'
import { type Settings, settingsOf } from './settings.ts'

/** The annotation `oarlock.dev/requested-run` of a Stack, before a Run handles it. */
export type RunRequest = {
  readonly value: string
  readonly type: 'Plan' | 'Apply' | 'Refresh'
  readonly planMode?: 'Destroy'
  readonly options?: RunOptions
}

/** What a Run does, as far as a request determines it. */
export type RunKind = Pick<RunSpec, 'type' | 'planMode' | 'options'>

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
  /** What a Destroy, or the plan of one, would use. */
  readonly destruction: LazyDestruction
  /** True when these inputs are applied completely. */
  readonly inSync: boolean
  readonly request: RunRequest | undefined
}

/** Folds a Stack and its Runs into what is known about it. */
export function foldFacts(input: StackInput): StackFacts {
  const { stack, nowMs } = input
  const isDeleting = stack.metadata.deletionTimestamp !== undefined
  const settings = deletionSettings(stack, settingsOf(stack.spec, input.approvalPolicy))
  const runs = ownRuns(input.runs, stack.metadata.uid)
  const active = runs.find(run => !isEnded(run))
  const last = runs.findLast(run => isEnded(run) && isLifecycleRun(run))
  const history = withAcceptedRestore(stack, foldRuns(stack, runs, nowMs))
  const destruction = lazyDestruction(input, runs, history.record)
  const { record, drifted, inputs } = isDeleting
    ? { drifted: undefined, ...factsOfDeletion(input, settings, runs, history.record, destruction()) }
    : withoutOutdated(input, settings, runs, last, history)
  const requested = pendingRequest(stack, record)
  const request = requested && 'problem' in requested ? undefined : requested
  const rejected = requested && 'problem' in requested ? requested : undefined
  const inSync = areApplied(inputs, record.applied)
  const events = [
    ...history.events,
    ...voidApprovalEvents(stack, record),
    ...voidRejectionEvents(stack, record),
    ...(rejected ? [rejectedRequestEvent(rejected)] : []),
  ]
  const facts = {
    ...{ input, settings, isDeleting, runs, active, last, drifted, events, inputs, destruction, inSync, request },
    record: rejected ? { ...record, handledRequest: rejected.value } : record,
  }
  return request && active && isHandledBy(active, request, facts)
    ? { ...facts, request: undefined, record: { ...record, handledRequest: request.value } }
    : facts
}

/** A deletion with a confirmed plan executes that plan or none, as if approval were required. */
function deletionSettings({ metadata }: Stack, settings: Settings): Settings {
  const isConfirmed = metadata.deletionTimestamp !== undefined && metadata.annotations?.[annotations.destroyPlan] !== undefined
  return isConfirmed ? { ...settings, manualApproval: true } : settings
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
    // A newer plan of the destruction replaces the one that awaits approval ({@link pendingDestroyPlan}).
    ...(facts.isDeleting && isDestroyPlan(run) && { plan: undefined }),
  }
  const next = pendingRequest(facts.input.stack, record)
  return { ...facts, runs: [...facts.runs, run], active: run, record, request: next && 'problem' in next ? undefined : next }
}

/** A request that no Run can handle. The embedded server rejects it; other servers store it. */
type RejectedRequest = { readonly value: string; readonly problem: string }

/** The request in the annotation `oarlock.dev/requested-run`, unless it was handled already. */
export function pendingRequest(stack: Stack, status: Pick<StackStatus, 'handledRequest'>): RunRequest | RejectedRequest | undefined {
  const value = stack.metadata.annotations?.[annotations.requestedRun]
  if (!value || value === status.handledRequest) return undefined
  const parsed = parseRunRequest(value)
  if ('problem' in parsed) return { value, problem: parsed.problem }
  const { type, options } = parsed
  const problem = options && engineOptionsProblem(stack.spec.engine, options)
  if (problem !== undefined) return { value, problem }
  const kinds = { plan: 'Plan', apply: 'Apply', refresh: 'Refresh', 'plan-destroy': 'Plan' } as const
  return { value, type: kinds[type], ...(type === 'plan-destroy' && { planMode: 'Destroy' }), ...(options && { options }) }
}

const rejectedRequestEvent = ({ problem }: RejectedRequest): StackEvent => ({
  type: 'Warning',
  reason: 'RequestRejected',
  message: `The request in the annotation ${annotations.requestedRun} is rejected, and no Run is created: ${problem}`,
})

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
    drifted: drifted && isDriftReported(settings, record, drifted) ? drifted : undefined,
    record: {
      ...record,
      plan,
      approval: recordApproval(input, { plan, approval: record.approval }),
      rejection: recordRejection(input, { plan, rejection: record.rejection }),
      ...(hasNewInputs && { failures: undefined, failingSince: undefined }),
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
  destruction: Destruction | undefined,
): Pick<StackFacts, 'record' | 'inputs'> {
  const plan = settings.manualApproval && destruction ? pendingDestroyPlan(runs, destruction) : undefined
  return {
    inputs: destruction?.inputs,
    record: {
      ...record,
      plan,
      approval: recordApproval(input, { plan, approval: record.approval }),
      rejection: recordRejection(input, { plan, rejection: record.rejection }),
    },
  }
}

/** Whether the condition is still reported. */
function isDriftReported({ drift, intervalMs }: Settings, { applied, restored, checkedAt }: StackRecord, drifted: Condition): boolean {
  if (drift === 'Off' || applied === undefined) return false
  // What was found before a backup was created may have changed since.
  if (restored !== undefined && !(Date.parse(checkedAt ?? '') >= Date.parse(restored.at))) return false
  return drifted.status !== 'False' || intervalMs !== undefined
}

/** True when a requested Run of the same type is still queued: it handles a second request too. */
function isHandledBy(
  { spec }: Run,
  request: RunRequest,
  { input, settings, inputs, isDeleting }: Pick<StackFacts, 'input' | 'settings' | 'inputs' | 'isDeleting'>,
): boolean {
  const isQueued = spec.workerName === undefined && !spec.cancel
  const isCurrent = typeof input.revision === 'string' && sameInputs(inputsOf({ spec }, specVersionOf(input.stack), 'execution'), inputs)
  return !isDeleting && isQueued && isCurrent && spec.reason === 'Requested' && isKindOf(request, spec, settings)
}

/** The type of a Run for changed inputs. */
export function changeType({ manualApproval }: Settings): 'Plan' | 'Apply' {
  return manualApproval ? 'Plan' : 'Apply'
}

/** What the Run does that a user requested as `kind`: where approval is required, it plans an Apply or a Refresh. */
export function requestedKind({ type, planMode, options }: RunKind, { manualApproval }: Settings): RunKind {
  const mode = manualApproval && type === 'Refresh' ? 'Refresh' : planMode
  const planned: RunType = manualApproval && isMutating(type) ? 'Plan' : type
  return { type: planned, ...(mode && { planMode: mode }), ...(options && { options }) }
}

/** True when a Run does what the request asks for. */
export function isKindOf(request: RunRequest, { type, planMode, options }: RunKind, settings: Settings): boolean {
  const kind = requestedKind(request, settings)
  return kind.type === type && kind.planMode === planMode && equalJson(kind.options ?? null, options ?? null)
}

function generationOf({ metadata }: Stack): number {
  return metadata.generation ?? 1
}
