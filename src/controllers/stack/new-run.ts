import { defaults, expectedStateVersion, isMutating, type Run, type RunSpec } from '../../api/index.ts'
import type { PlannedRun } from './choose-run.ts'
import type { StackFacts } from './facts.ts'
import type { Inputs } from './inputs.ts'
import { priorityClassOf } from './priority-class.ts'
import { withRaisedMemory } from './raised-memory.ts'
import { runName } from './run-name.ts'

/** The planned Run, which replaces the waiting Run `superseded` if one is passed. */
export function newRun(facts: StackFacts, planned: PlannedRun, inputs: Inputs, superseded: Run | undefined): Run {
  const { input, runs, record } = facts
  const { stack } = input
  // The number is the epoch: each Run has a higher one than all before (invariant 3).
  const epoch = Math.max((record.lastRunNumber ?? 0) + 1, record.minRunNumber ?? 0)
  const stateVersion = expectedStateVersion({ ...stack, status: record })
  const spec: RunSpec = {
    type: planned.type,
    ...(planned.planMode && { planMode: planned.planMode }),
    stackRef: { name: stack.metadata.name, uid: stack.metadata.uid, generation: inputs.generation },
    epoch,
    stack: frozenStackSpec(facts, planned),
    revision: inputs.revision,
    inputsDigest: inputs.inputsDigest,
    reason: planned.reason,
    ...(stateVersion > 0 && { stateVersion }),
    ...(planned.recoveredFrom && { recoveredFrom: planned.recoveredFrom }),
    ...(planned.approvedPlan && { approvedPlan: planned.approvedPlan }),
    pool: stack.spec.pool ?? defaults.pool,
    priorityClass: priorityClassOf(stack, planned, runs, superseded),
    priority: stack.spec.priority ?? 0,
    ...(superseded && { queuedSince: superseded.spec.queuedSince ?? superseded.metadata.creationTimestamp }),
  }
  return { metadata: { name: runName(stack, epoch) }, spec } as Run
}

/** The spec that the Run freezes. An invalid spec cannot destroy what a valid one created: then that of the last mutating Run is used. */
function frozenStackSpec({ input, runs, settings }: StackFacts, planned: PlannedRun): RunSpec['stack'] {
  const { stack, specErrors } = input
  const last = runs.findLast(run => isMutating(run.spec.type))
  const isDestruction = planned.type === 'Destroy' || planned.planMode === 'Destroy'
  const spec = isDestruction && specErrors.length > 0 ? (last?.spec.stack ?? stack.spec) : withRaisedMemory(stack, runs)
  // Also where the namespace requires it: the worker then keeps the plan, and its digest covers the bytes of the source.
  return settings.manualApproval ? { ...spec, approval: 'Manual' } : spec
}
