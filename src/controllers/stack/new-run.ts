import { defaults, expectedStateVersion, isRejected, type Run, type RunSpec } from '../../api/index.ts'
import type { PlannedRun } from './choose-run.ts'
import type { Destruction } from './destruction.ts'
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
  const dependencyDigest = runs.findLast(run => run.status?.dependencies !== undefined)?.status?.dependencies?.digest
  // Nothing was attempted: its place in the queue is kept.
  const newest = runs.at(-1)
  const waited = superseded ?? (newest && isRejected(newest) ? newest : undefined)
  const destruction = isDestruction(planned) ? facts.destruction() : undefined
  const spec: RunSpec = {
    type: planned.type,
    ...(planned.planMode && { planMode: planned.planMode }),
    ...(planned.options && { options: planned.options }),
    stackRef: { name: stack.metadata.name, uid: stack.metadata.uid, generation: inputs.generation },
    epoch,
    stack: frozenStackSpec(facts, planned, destruction),
    ...(destruction?.configuration && { configuration: destruction.configuration }),
    revision: inputs.revision,
    inputsDigest: inputs.inputsDigest,
    reason: planned.reason,
    ...(stateVersion > 0 && { stateVersion }),
    ...(planned.recoveredFrom && { recoveredFrom: planned.recoveredFrom }),
    ...(planned.approvedPlan && { approvedPlan: planned.approvedPlan }),
    ...(dependencyDigest !== undefined && { dependencyDigest }),
    pool: stack.spec.pool ?? defaults.pool,
    priorityClass: priorityClassOf(stack, planned, runs, waited),
    priority: stack.spec.priority ?? 0,
    ...(waited && { queuedSince: waited.spec.queuedSince ?? waited.metadata.creationTimestamp }),
  }
  return { metadata: { name: runName(stack, epoch) }, spec } as Run
}

/** Whether a Run destroys all resources, or plans that. */
export const isDestruction = ({ type, planMode }: Pick<PlannedRun, 'type' | 'planMode'>): boolean =>
  type === 'Destroy' || planMode === 'Destroy'

/** What the planned Run uses; undefined while that is not known. */
export const inputsFor = ({ inputs, destruction }: StackFacts, planned: PlannedRun): Inputs | undefined =>
  isDestruction(planned) ? destruction()?.inputs : inputs

/** The spec that the Run freezes. */
function frozenStackSpec(
  { input, runs, settings }: StackFacts,
  planned: PlannedRun,
  destruction: Destruction | undefined,
): RunSpec['stack'] {
  const { resources } = withRaisedMemory(input.stack, runs)
  const base = destruction ? destruction.version.spec : input.stack.spec
  const spec = resources ? { ...base, resources } : base
  // Also where the namespace requires it, and for a plan that a user confirms: the worker then keeps the plan, and its digest covers the bytes of the source.
  return settings.manualApproval || planned.planMode === 'Destroy' ? { ...spec, approval: 'Manual' } : spec
}
