import { type Run, type StackStatus, stackFinalizer } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import type { CreateStep, NextStep, Outlook, WaitStep } from './choose-next.ts'
import type { PlannedRun } from './choose-run.ts'
import { coalesceStatus } from './coalesce-status.ts'
import { type StackConditions, type StackEvent, setConditions } from './conditions.ts'
import type { StackDecision } from './decision.ts'
import { deletionConditions } from './deletion-conditions.ts'
import type { StackFacts } from './facts.ts'
import { runsToDelete } from './history-limit.ts'
import { activeConditions, outlookConditions } from './outlook-conditions.ts'
import { isRoutine } from './run-status.ts'

type Actions = Omit<StackDecision, 'status' | 'deleteRuns' | 'events' | 'addFinalizer'> & { readonly nextRunAt?: string }

/** Puts what is next into the status to write and the actions to execute. */
export function buildDecision(facts: StackFacts, next: NextStep): StackDecision {
  const { stack } = facts.input
  switch (next.kind) {
    case 'none':
      return { status: stack.status ?? {}, deleteRuns: [], events: [] }
    case 'release':
      return { status: stack.status ?? {}, deleteRuns: [], events: facts.events, removeFinalizer: true }
    case 'idle':
      return decision(facts, outlookConditions(facts, next.outlook), scheduledAfter(facts, next.outlook))
    case 'deleting':
      return decision(
        facts,
        deletionConditions(facts, next.choice),
        next.choice.kind === 'destroy' ? scheduled(facts, next.choice.planned) : {},
      )
    case 'wait':
      return decisionWhileActive(facts, next)
    case 'create':
      return decisionToCreate(next)
  }
}

function scheduledAfter(facts: StackFacts, outlook: Outlook): Actions {
  if (outlook.kind === 'run') return scheduled(facts, outlook.planned)
  // An approved plan that has to wait is shown as expired when it is.
  const expiresAt = outlook.kind === 'held' ? outlook.planned.approvedPlan?.expiresAt : undefined
  return expiresAt === undefined ? {} : { requeueAfterMs: Date.parse(expiresAt) - facts.input.nowMs }
}

function scheduled({ input }: StackFacts, { atMs }: PlannedRun): Actions {
  return { nextRunAt: rfc3339(atMs), requeueAfterMs: atMs - input.nowMs }
}

function decisionWhileActive(facts: StackFacts, { cancel, requeueAfterMs, outlook, active }: WaitStep): StackDecision {
  const { name, resourceVersion = '' } = active.metadata
  return activeDecision(facts, active, outlook, {
    ...(cancel && { cancelRun: { name, resourceVersion, ...cancel } }),
    ...(requeueAfterMs !== undefined && { requeueAfterMs }),
  })
}

function decisionToCreate({ run, superseded, after }: CreateStep): StackDecision {
  const { name } = run.metadata
  const { name: replaced = '', resourceVersion = '' } = superseded?.metadata ?? {}
  const facts = { ...after.facts, events: [...after.facts.events, ...creationEvents(run, superseded)] }
  return activeDecision(facts, run, after.outlook, {
    createRun: { name, spec: run.spec },
    ...(superseded && { supersedeRun: { name: replaced, resourceVersion, by: name } }),
  })
}

function activeDecision(facts: StackFacts, active: Run, outlook: Outlook | undefined, actions: Actions): StackDecision {
  return coalesceStatus({ ...facts, active }, shown => decision(shown, activeConditions(shown, shown.active, outlook), actions))
}

function decision(facts: StackFacts, update: StackConditions, actions: Actions = {}): StackDecision {
  const { input, runs, record, settings, isDeleting } = facts
  const { stack, nowMs } = input
  const { nextRunAt, requeueAfterMs, ...acts } = actions
  const observedGeneration = stack.metadata.generation ?? 1
  const { conditions, events } = setConditions(stack.status?.conditions ?? [], update, facts.drifted, observedGeneration, nowMs)
  const hasFinalizer = stack.metadata.finalizers?.includes(stackFinalizer) ?? false
  return {
    status: withoutUndefined({ ...record, observedGeneration, conditions, nextRunAt }),
    ...acts,
    ...(!isDeleting && !hasFinalizer && { addFinalizer: true }),
    deleteRuns: runsToDelete(runs, record, settings.historyLimit),
    // The end of a Run and the condition that follows from it are one event.
    events: [...facts.events, ...events.filter(({ reason }) => !facts.events.some(event => event.reason === reason))],
    ...(requeueAfterMs !== undefined && { requeueAfterMs: Math.max(1, Math.ceil(requeueAfterMs)) }),
  }
}

function creationEvents(run: Run, superseded: Run | undefined): StackEvent[] {
  if (isRoutine(run)) return []
  const { name } = run.metadata
  const { spec } = run
  const recovery = spec.recoveredFrom ? `, continues Run ${spec.recoveredFrom}` : ''
  const created: StackEvent = {
    type: 'Normal',
    reason: 'RunCreated',
    message: `Created Run ${name} (${spec.type}): ${spec.reason}${recovery}`,
  }
  if (!superseded) return [created]
  return [{ type: 'Normal', reason: 'RunSuperseded', message: `Run ${superseded.metadata.name} was superseded by Run ${name}` }, created]
}

function withoutUndefined(status: StackStatus): StackStatus {
  const present: { [field: string]: unknown } = {}
  for (const [field, value] of Object.entries(status)) if (value !== undefined) present[field] = value
  return present
}
