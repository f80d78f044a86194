import {
  annotations,
  defaults,
  isEnded,
  isMutating,
  type Run,
  type RunPhase,
  type RunSpec,
  type Stack,
  type StackStatus,
} from '../../api/index.ts'
import { equalJson, findCondition, rfc3339, type StatusCause } from '../../kubernetes/object/index.ts'
import { type Choice, chooseRun, pendingRequest, type Want } from './choose-run.ts'
import {
  type ConditionUpdate,
  formatActive,
  formatDigest,
  formatDone,
  formatPlanned,
  pausedCondition,
  quote,
  readyCondition,
  reconcilingCondition,
  type StackEvent,
  setConditions,
  stalledCondition,
} from './conditions.ts'
import { decideDeletion } from './decide-deletion.ts'
import { type Dependency, dependencyGate } from './dependencies.ts'
import { foldRuns, observeRun } from './fold-runs.ts'
import { runsToDelete } from './keep-runs.ts'
import { reportProgressAfterMs, stackFinalizer, supersedeAfterMs } from './limits.ts'
import { withRaisedMemory } from './raised-memory.ts'
import { runClass } from './run-class.ts'
import { type Inputs, inputsOf, isAdHocRun, isLifecycleRun, ownRuns, phaseOf, planChanges, sameInputs } from './run-facts.ts'
import { runName } from './run-name.ts'
import { forgetOldFailures } from './same-failure.ts'
import { type Settings, settingsOf } from './settings.ts'

/** Why the revision of a source is not known. */
export type RevisionError = { readonly reason: string; readonly message: string; readonly retryable: boolean }

export type StackInput = {
  readonly stack: Stack
  /** Every Run of the Stack, and certainly the one that `status.lastRun` names, if it exists (a cache may be behind: ask the server). */
  readonly runs: readonly Run[]
  /** The Stacks it depends on ({@link dependencyNames}), in order. */
  readonly dependencies: readonly Dependency[]
  /** Names of the existing Stacks that depend on it. */
  readonly dependents: readonly string[]
  /** The cycle it is part of, such as `['a', 'b', 'a']`. */
  readonly cycle?: readonly string[] | undefined
  readonly specErrors: readonly StatusCause[]
  /** Secrets, keys and ConfigMaps that its variables and environment name and that do not exist. */
  readonly inputErrors?: readonly StatusCause[]
  /** The source as it is now; undefined while that is being found out. */
  readonly revision: string | undefined | { readonly error: RevisionError }
  readonly inputsDigest: string
  readonly nowMs: number
  /** A constant of the Stack between 0 and 1 that spreads drift checks ({@link jitterOf}). */
  readonly jitter: number
}

export type StackDecision = {
  /** The whole next status. Equal to the present one when nothing is to be written. */
  readonly status: StackStatus
  /** Create it before the status is written: a crash between the two is found again by the Run's number. */
  readonly createRun?: { readonly name: string; readonly spec: RunSpec }
  /** A Run that waits is replaced by `createRun`: end it as Canceled, at exactly this version, before that is created. */
  readonly supersedeRun?: { readonly name: string; readonly resourceVersion: string; readonly by: string }
  readonly cancelRun?: { readonly name: string; readonly reason?: 'Outdated' }
  /** Ended Runs beyond the history limit, to be deleted after the status is written: it holds what they told. */
  readonly deleteRuns: readonly string[]
  /** To be added before a Run is created. */
  readonly addFinalizer?: boolean
  readonly removeFinalizer?: boolean
  readonly events: readonly StackEvent[]
  /** Decide again after so long even if nothing changes. */
  readonly requeueAfterMs?: number
}

/**
 * Decides what a Stack needs next and what its status says. Deciding again on its own outcome changes nothing.
 * At most one Run of a Stack is active at any time, so at most one that may write (invariant 1), and each has a number,
 * its epoch, higher than all before (invariant 3).
 */
export function decideStack(input: StackInput): StackDecision {
  const decision = decide(input)
  const told = coalesceProgress(input)
  if (!told) return decision
  const held = decide({ ...input, runs: told.runs })
  const { status, requeueAfterMs = Infinity, deleteRuns, events, ...actions } = held
  const isOnlyProgress =
    Object.keys(actions).length + deleteRuns.length + events.length === 0 && equalJson(status, input.stack.status ?? {})
  return isOnlyProgress ? { ...held, requeueAfterMs: Math.min(requeueAfterMs, told.againInMs) } : decision
}

function decide(input: StackInput): StackDecision {
  const { stack, nowMs } = input
  const runs = ownRuns(input.runs, stack.metadata.uid)
  const settings = settingsOf(stack.spec)
  const { status, events } = foldRuns(stack, runs, nowMs)
  const isHeld = stack.metadata.finalizers?.includes(stackFinalizer) ?? false
  const facts: Facts = { input, runs, settings, status, events }

  if (stack.metadata.deletionTimestamp) return isHeld ? deletion(facts) : { status: stack.status ?? {}, deleteRuns: [], events: [] }
  return { ...reconcileLive(facts), ...(!isHeld && { addFinalizer: true }) }
}

/** The Runs with the active one in the phase that the status tells of, while it is too young for a write that tells of another. */
function coalesceProgress({ stack, runs, nowMs }: StackInput): { runs: readonly Run[]; againInMs: number } | undefined {
  const told = stack.status?.lastRun
  const active = runs.find(run => run.metadata.name === told?.name)
  if (!told || !active || isEnded(active) || told.phase === phaseOf(active)) return undefined
  const againInMs = Date.parse(active.status?.startedAt ?? active.metadata.creationTimestamp) + reportProgressAfterMs - nowMs
  // Where the clock of its worker is ahead, nothing is held back: that would last as long as they are apart.
  if (againInMs <= 0 || againInMs > reportProgressAfterMs) return undefined
  const before: Run = { ...active, status: { ...active.status, phase: told.phase as RunPhase } }
  return { runs: runs.map(run => (run === active ? before : run)), againInMs }
}

type Facts = {
  readonly input: StackInput
  readonly runs: readonly Run[]
  readonly settings: Settings
  readonly status: StackStatus
  readonly events: readonly StackEvent[]
}

/** What is said, and the Run that is wanted, now or later, if nothing stands in its way. */
type Plan = {
  readonly say: ConditionUpdate
  readonly want?: Want
  readonly inputs?: Inputs
  /** True when `say` comes from how earlier Runs went, and not from what the Stack itself says. */
  readonly isHistory?: boolean
}

function reconcileLive(facts: Facts): StackDecision {
  const { input, runs, settings, status } = facts
  const { nowMs } = input
  const known = presentInputs(facts)
  if (!settings.manual || (known && !sameInputs(status.plan, known))) delete status.plan
  // Asked again: a plan that is dropped may have been all that the inputs were known from.
  const inputs = presentInputs(facts)
  forgetOldFailures(status, input.stack.metadata.generation ?? 1)
  const last = runs.findLast(run => isEnded(run) && isLifecycleRun(run))
  if (inputs && last && last.spec.type !== 'Destroy' && !sameInputs(inputsOf(last), inputs)) delete status.failures
  dropStaleDrift(status, settings)

  const course = findPlan(facts, inputs)
  const active = runs.find(run => !isEnded(run))
  const { want } = course
  if (active) {
    delete status.nextRunAt
    return whileRunActive(facts, active, course, inputs)
  }
  if (!want || !course.inputs) {
    delete status.nextRunAt
    return finish(facts, { say: course.say, keepRuns: settings.historyLimit })
  }
  if (want.atMs > nowMs) {
    status.nextRunAt = rfc3339(want.atMs)
    return finish(facts, { say: course.say, keepRuns: settings.historyLimit, requeueAfterMs: want.atMs - nowMs })
  }
  delete status.nextRunAt
  return start(facts, want, course.inputs, undefined)
}

/** What to do while a Run is active: nothing, unless a change has overtaken it. */
function whileRunActive(facts: Facts, active: Run, course: Plan, inputs: Inputs | undefined): StackDecision {
  const { input, settings, status } = facts
  const { nowMs, stack } = input
  const wait = (rest: Partial<Ending> = {}) =>
    finish(facts, { say: whileActive(facts, active, course, inputs), keepRuns: settings.historyLimit, ...rest })
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
    const type = request.type === 'Apply' ? (settings.manual ? 'Plan' : 'Apply') : request.type
    if (active.spec.type !== type) return wait()
    if (active.spec.reason === 'Requested') {
      // Asked for twice while it waits: one Run answers both.
      status.handledRequest = request.value
      const say = whileActive(facts, active, findPlan(facts, inputs), inputs)
      return finish(facts, { say, keepRuns: settings.historyLimit })
    }
  }
  const replaced: Run = { ...active, status: { phase: 'Canceled', reason: 'Superseded' } }
  const next: Facts = { ...facts, runs: facts.runs.map(run => (run === active ? replaced : run)) }
  const { want } = findPlan(next, inputs)
  if (!want || want.atMs > nowMs) return wait()
  const youngForMs = Date.parse(active.metadata.creationTimestamp) + supersedeAfterMs - nowMs
  if (youngForMs > 0) return wait({ requeueAfterMs: youngForMs })
  return start(next, want, inputs, undefined, active)
}

function deletion(facts: Facts): StackDecision {
  const { input, runs, settings, status } = facts
  const { stack, nowMs } = input
  const inputs = destroyInputs(facts)
  const inCycle = new Set(input.cycle ?? [])
  const dependents = input.dependents.filter(name => !inCycle.has(name))
  const step = decideDeletion({ stack, status, runs, settings, inputs, dependents, nowMs })
  delete status.nextRunAt
  switch (step.kind) {
    case 'release':
      return { status: stack.status ?? {}, deleteRuns: [], events: facts.events, removeFinalizer: true }
    case 'wait':
      return finish(facts, {
        say: step.say,
        keepRuns: settings.historyLimit,
        ...(step.cancelRun && { cancelRun: { name: step.cancelRun } }),
      })
    case 'run': {
      const { want } = step
      if (want.atMs <= nowMs && inputs) return start(facts, want, inputs, step.say)
      status.nextRunAt = rfc3339(want.atMs)
      return finish(facts, { say: step.say, keepRuns: settings.historyLimit, requeueAfterMs: want.atMs - nowMs })
    }
  }
}

function findPlan(facts: Facts, inputs: Inputs | undefined): Plan {
  const { input, runs, settings, status } = facts
  const { stack, nowMs, jitter, revision } = input
  const error = typeof revision === 'object' ? revision.error : undefined
  if (input.specErrors.length > 0) return { say: stalledCondition('InvalidSpec', formatCauses(input.specErrors)) }
  if (input.cycle) {
    const path = input.cycle.join(' → ')
    const fields = 'spec.dependsOn or spec.variablesFrom[].stackRef'
    return { say: stalledCondition('DependencyCycle', `Stacks depend on each other: ${path}. Take one of these out of ${fields}`) }
  }
  if (input.inputErrors?.length) return { say: reconcilingCondition('InputNotFound', formatCauses(input.inputErrors)) }
  if (error && !error.retryable) return { say: stalledCondition(error.reason, quote(error.message)) }
  if (!inputs) {
    if (error) return { say: reconcilingCondition(error.reason, `${quote(error.message)}. It is tried again`) }
    return { say: reconcilingCondition('ResolvingSource', 'The revision of the source is being looked up') }
  }

  const choice = chooseRun({ stack, status, runs, settings, inputs, nowMs, jitter })
  const say = formatChoice(facts, inputs, choice)
  if (choice.kind !== 'run') return { say: withSourceError(say, error), isHistory: true }
  const { want } = choice
  if (settings.suspended) {
    if (say.ready.status === 'True') return { say }
    return { say: pausedCondition('Suspended', `The Stack is suspended; set spec.suspend to false to go on. ${say.ready.message}`) }
  }
  if (typeof revision !== 'string') {
    // Known from the Run before: good enough to see that nothing changed, not to start something.
    if (!error || say.ready.status === 'True') return { say: withSourceError(say, error) }
    return { say: reconcilingCondition(error.reason, `${quote(error.message)}. It is tried again`) }
  }
  // A check of what stands has the inputs it had; it needs nobody to be Ready.
  const gate = want.reason === 'DriftCheck' ? undefined : dependencyGate(stack.spec, input.dependencies)
  if (gate) {
    const isExtra = say.ready.status === 'True'
    return { say: isExtra ? say : reconcilingCondition(gate.reason, gate.message) }
  }
  return { say, want, inputs, isHistory: true }
}

function formatChoice({ input, runs, settings, status }: Facts, inputs: Inputs, choice: Choice): ConditionUpdate {
  const { stack } = input
  const inSync = sameInputs(status.applied, inputs)
  const base = inSync ? formatApplied(stack, status, runs) : undefined
  switch (choice.kind) {
    case 'rest':
      return base!
    case 'stall':
      return stalledCondition(choice.reason, choice.message)
    case 'await': {
      const message = formatAwaiting(stack, status, runs)
      const word = { reason: 'AwaitingApproval', message }
      return base ? { ...base, awaitingApproval: word } : { ready: { status: 'False', ...word }, awaitingApproval: word }
    }
    case 'run': {
      const { because } = choice.want
      if (because)
        return because.isFinal ? stalledCondition(because.reason, because.message) : reconcilingCondition(because.reason, because.message)
      if (base) return base
      const { plan } = status
      const what = plan && settings.manual ? 'the approved plan' : changeText(status, inputs)
      return reconcilingCondition('Progressing', `A Run is needed for ${what}`)
    }
  }
}

function changeText(status: StackStatus, inputs: Inputs): string {
  if (!status.applied || status.applied.generation !== inputs.generation) return `generation ${inputs.generation}`
  return status.applied.revision !== inputs.revision ? `revision ${formatDigest(inputs.revision)}` : 'changed inputs'
}

function formatApplied(stack: Stack, status: StackStatus, runs: readonly Run[]): ConditionUpdate {
  const run = runs.find(({ metadata }) => metadata.name === status.applied?.runName)
  if (run) {
    const { plan } = run.status ?? {}
    if (!planChanges(run)) return readyCondition('Applied', 'In sync: the last Run found nothing to change')
    return readyCondition('Applied', plan ? `Applied: ${formatDone(plan)}` : 'Applied')
  }
  // The Run is gone from the history: what was said of it stays said.
  const before = findCondition(stack.status?.conditions, 'Ready')
  const message = before?.reason === 'Applied' ? before.message.split(sourceErrorMark, 1)[0]! : `Applied by Run ${status.applied?.runName}`
  return readyCondition('Applied', message)
}

const sourceErrorMark = '. The source cannot be looked up at present: '

function formatAwaiting(stack: Stack, status: StackStatus, runs: readonly Run[]): string {
  const plan = status.plan!
  const { name, namespace, annotations: given } = stack.metadata
  const approved = given?.[annotations.approvedPlan]
  // The annotation of a plan that was applied just stays there: that one is done, not outdated.
  const isDone = runs.some(run => run.spec.approvedPlan?.digest === approved && phaseOf(run) === 'Succeeded')
  const outdated = approved && !isDone ? `The approved plan ${formatDigest(approved)} is outdated. ` : ''
  return `${outdated}Plan ${formatDigest(plan.digest)} of Run ${plan.runName} waits for approval: ${formatPlanned(plan)}. Approve it with: oarlock approve ${name} -n ${namespace}`
}

function whileActive(facts: Facts, active: Run, course: Plan, inputs: Inputs | undefined): ConditionUpdate {
  const { input, status } = facts
  const isCheck = active.spec.reason === 'DriftCheck' && sameInputs(status.applied, inputsOf(active))
  if (isAdHocRun(active) || (isCheck && course.say.ready.status === 'True')) return course.say
  // A Stack stays Stalled while an engine that was missing is looked for again, and not while somebody asked for a new try.
  if (course.say.stalled && (!course.isHistory || active.spec.reason === 'Retry')) return course.say
  const { lastRun } = status
  const number = (status.failures ?? 0) > 0 && lastRun ? ` (retry ${status.failures} of ${facts.settings.retryLimit})` : ''
  const isBehind = inputs !== undefined && !sameInputs(inputsOf(active), inputs) && !input.stack.metadata.deletionTimestamp
  const then = isBehind
    ? `. After it a Run is needed for ${changeText({ ...status, applied: { ...inputsOf(active), at: '', runName: '' } }, inputs)}`
    : ''
  return reconcilingCondition('Progressing', `${formatActive(active)}${number}${then}`)
}

function withSourceError(say: ConditionUpdate, error: RevisionError | undefined): ConditionUpdate {
  if (!error) return say
  const message = `${say.ready.message}${sourceErrorMark}${quote(error.message)}`
  return { ...say, ready: { ...say.ready, message } }
}

/** Makes the Run that is wanted, instead of `superseded` if one is given. */
function start(facts: Facts, want: Want, inputs: Inputs, deleting: ConditionUpdate | undefined, superseded?: Run): StackDecision {
  const { input, runs, settings, status } = facts
  const { stack } = input
  const number = (status.lastRunNumber ?? 0) + 1
  const name = runName(stack, number)
  const spec: RunSpec = {
    type: want.type,
    stackRef: { name: stack.metadata.name, uid: stack.metadata.uid, generation: inputs.generation },
    epoch: number,
    stack: frozenSpec(facts, want),
    revision: inputs.revision,
    inputsDigest: inputs.inputsDigest,
    reason: want.reason,
    ...(want.recoveredFrom && { recoveredFrom: want.recoveredFrom }),
    ...(want.approvedPlan && { approvedPlan: want.approvedPlan }),
    pool: stack.spec.pool ?? defaults.pool,
    priorityClass: runClass(stack, want, runs, superseded),
    priority: stack.spec.priority ?? 0,
    ...(superseded && { queuedSince: superseded.spec.queuedSince ?? superseded.metadata.creationTimestamp }),
  }
  observeRun(status, { spec }, runs.findLast(isLifecycleRun))
  status.lastRunNumber = number
  status.lastRun = { name, type: want.type, phase: 'Queued', reason: want.reason }
  if (want.request) status.handledRequest = want.request
  const from = want.recoveredFrom ? `, after ${want.recoveredFrom} was lost` : ''
  const event: StackEvent = { type: 'Normal', reason: 'RunCreated', message: `Created Run ${name} (${want.type}): ${want.reason}${from}` }
  const run = { metadata: { name }, spec } as Run
  const { name: oldName, resourceVersion = '' } = superseded?.metadata ?? {}
  const gone: StackEvent[] =
    oldName === undefined ? [] : [{ type: 'Normal', reason: 'RunSuperseded', message: `Run ${oldName} waits no more: ${name} replaces it` }]
  const next: Facts = { ...facts, runs: [...runs, run], events: [...facts.events, ...gone, event] }
  const say = deleting
    ? reconcilingCondition('Deleting', formatActive(run))
    : whileActive(next, run, findPlan(next, presentInputs(next)), inputs)
  const supersedeRun = oldName === undefined ? undefined : { name: oldName, resourceVersion, by: name }
  return finish(next, { say, keepRuns: settings.historyLimit, createRun: { name, spec }, ...(supersedeRun && { supersedeRun }) })
}

/** A broken spec cannot destroy what a good one made: then the last one that worked on the world is used. */
function frozenSpec({ input, runs }: Facts, want: Want): RunSpec['stack'] {
  const { stack, specErrors } = input
  const last = runs.findLast(run => isMutating(run.spec.type))
  if (want.type === 'Destroy' && specErrors.length > 0) return last?.spec.stack ?? stack.spec
  return withRaisedMemory(stack, runs)
}

/**
 * The inputs as they are now. After a restart the revision is not known at first: then the one of the last Run counts if
 * the Stack did not change since, so that a restart writes nothing to a thousand idle Stacks.
 */
function presentInputs({ input, runs, status }: Facts): Inputs | undefined {
  const { stack, inputsDigest } = input
  const generation = stack.metadata.generation ?? 1
  if (typeof input.revision === 'string') return { generation, revision: input.revision, inputsDigest }
  const last = runs.findLast(run => !isAdHocRun(run))
  const known = last ? inputsOf(last) : (status.applied ?? status.plan)
  return known?.generation === generation ? { generation, revision: known.revision, inputsDigest } : undefined
}

function destroyInputs({ input, runs, status }: Facts): Inputs | undefined {
  const { stack, inputsDigest } = input
  const known = status.applied?.revision ?? runs.findLast(run => isMutating(run.spec.type))?.spec.revision
  const revision = typeof input.revision === 'string' ? input.revision : known
  return revision === undefined ? undefined : { generation: stack.metadata.generation ?? 1, revision, inputsDigest }
}

function dropStaleDrift(status: StackStatus, settings: Settings): void {
  const drifted = findCondition(status.conditions, 'Drifted')
  if (!drifted) return
  const isMeant =
    settings.drift !== 'Off' && status.applied !== undefined && (drifted.status === 'True' || settings.intervalMs !== undefined)
  if (!isMeant) status.conditions = status.conditions?.filter(condition => condition !== drifted)
}

type Ending = {
  readonly say: ConditionUpdate
  readonly keepRuns: number
  readonly createRun?: StackDecision['createRun']
  readonly supersedeRun?: StackDecision['supersedeRun']
  readonly cancelRun?: StackDecision['cancelRun']
  readonly requeueAfterMs?: number
}

function finish({ input, runs, status, events }: Facts, ending: Ending): StackDecision {
  const { stack, nowMs } = input
  const generation = stack.metadata.generation ?? 1
  const spoken = setConditions(status, ending.say, generation, nowMs)
  status.conditions = spoken.conditions
  status.observedGeneration = generation
  return {
    status,
    ...(ending.createRun && { createRun: ending.createRun }),
    ...(ending.supersedeRun && { supersedeRun: ending.supersedeRun }),
    ...(ending.cancelRun && { cancelRun: ending.cancelRun }),
    deleteRuns: runsToDelete(runs, status, ending.keepRuns),
    // A Run that ends the course tells of it once, not a second time as a condition.
    events: [...events, ...spoken.events.filter(({ reason }) => !events.some(event => event.reason === reason))],
    ...(ending.requeueAfterMs !== undefined && { requeueAfterMs: Math.max(1, Math.ceil(ending.requeueAfterMs)) }),
  }
}

function formatCauses(causes: readonly StatusCause[]): string {
  return quote(causes.map(({ field, message }) => `${field}: ${message}`).join('; '))
}

/** A constant between 0 and 1 from a Stack's uid: its place within the jitter of its drift checks. */
export function jitterOf(uid: string): number {
  // FNV-1a, 32 bits: uids of one server may differ in few places only.
  let hash = 0x811c9dc5
  for (let i = 0; i < uid.length; i++) hash = Math.imul(hash ^ uid.charCodeAt(i), 0x01000193)
  return (hash >>> 0) / 0x1_0000_0000
}
