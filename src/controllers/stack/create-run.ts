import { defaults, isMutating, type Run, type RunSpec } from '../../api/index.ts'
import { observeRun } from './aggregate-runs.ts'
import type { PlannedRun } from './choose-run.ts'
import { reconcilingCondition, type StackEvent } from './conditions.ts'
import { completeDecision, currentInputs, type DecisionContext, type StackDecision } from './decision.ts'
import type { Inputs } from './inputs.ts'
import { formatActiveRun } from './messages.ts'
import { conditionsWhileActive, findNextStep } from './next-step.ts'
import { priorityClassOf } from './priority-class.ts'
import { withRaisedMemory } from './raised-memory.ts'
import { runName } from './run-name.ts'
import { isLifecycleRun } from './run-status.ts'

/** Completes the decision with the planned Run, which replaces the waiting Run `superseded` if one is passed. */
export function createRun(context: DecisionContext, planned: PlannedRun, inputs: Inputs, superseded?: Run): StackDecision {
  const { input, runs, status } = context
  const { stack } = input
  // The number is the epoch: each Run has a higher one than all before (invariant 3).
  const epoch = (status.lastRunNumber ?? 0) + 1
  const name = runName(stack, epoch)
  const spec: RunSpec = {
    type: planned.type,
    stackRef: { name: stack.metadata.name, uid: stack.metadata.uid, generation: inputs.generation },
    epoch,
    stack: frozenStackSpec(context, planned),
    revision: inputs.revision,
    inputsDigest: inputs.inputsDigest,
    reason: planned.reason,
    ...(planned.recoveredFrom && { recoveredFrom: planned.recoveredFrom }),
    ...(planned.approvedPlan && { approvedPlan: planned.approvedPlan }),
    pool: stack.spec.pool ?? defaults.pool,
    priorityClass: priorityClassOf(stack, planned, runs, superseded),
    priority: stack.spec.priority ?? 0,
    ...(superseded && { queuedSince: superseded.spec.queuedSince ?? superseded.metadata.creationTimestamp }),
  }
  observeRun(status, { spec }, runs.findLast(isLifecycleRun))
  status.lastRunNumber = epoch
  status.lastRun = { name, type: planned.type, phase: 'Queued', reason: planned.reason }
  if (planned.request) status.handledRequest = planned.request

  const run = { metadata: { name }, spec } as Run
  const next: DecisionContext = { ...context, runs: [...runs, run], events: [...context.events, ...createEvents(run, superseded)] }
  const conditions = stack.metadata.deletionTimestamp
    ? reconcilingCondition('Deleting', formatActiveRun(run))
    : conditionsWhileActive(next, run, findNextStep(next, currentInputs(next)), inputs)
  const supersedeRun = superseded && {
    name: superseded.metadata.name,
    resourceVersion: superseded.metadata.resourceVersion ?? '',
    by: name,
  }
  return completeDecision(next, conditions, { createRun: { name, spec }, ...(supersedeRun && { supersedeRun }) })
}

function createEvents({ metadata: { name }, spec }: Run, superseded: Run | undefined): StackEvent[] {
  const recovery = spec.recoveredFrom ? `, continues lost Run ${spec.recoveredFrom}` : ''
  const created: StackEvent = {
    type: 'Normal',
    reason: 'RunCreated',
    message: `Created Run ${name} (${spec.type}): ${spec.reason}${recovery}`,
  }
  if (!superseded) return [created]
  return [{ type: 'Normal', reason: 'RunSuperseded', message: `Run ${superseded.metadata.name} was superseded by Run ${name}` }, created]
}

/** The spec that the Run freezes. An invalid spec cannot destroy what a valid one created: then that of the last mutating Run is used. */
function frozenStackSpec({ input, runs }: DecisionContext, planned: PlannedRun): RunSpec['stack'] {
  const { stack, specErrors } = input
  const last = runs.findLast(run => isMutating(run.spec.type))
  if (planned.type === 'Destroy' && specErrors.length > 0) return last?.spec.stack ?? stack.spec
  return withRaisedMemory(stack, runs)
}
