import { annotations, isMutating, phaseOf, type Run, type RunSpec, type Stack, type StackSpec } from '../../api/index.ts'
import type { StackInput } from './decision.ts'
import type { StackRecord } from './fold-runs.ts'
import { type Inputs, type SpecVersion, specVersionOf } from './inputs.ts'
import { isDestroyPlan, mayHaveWritten } from './run-status.ts'
import { specDigest, withInfrastructureOf } from './spec-effects.ts'

/** How the resources of a Stack are destroyed, as far as its Runs show it. */
export type Destruction = {
  /** What a Destroy, or the plan of one, freezes: the present spec, with what was applied last instead of the fields that affect the infrastructure. */
  readonly version: SpecVersion
  readonly inputs: Inputs
  /** False while the revision of the source that it uses is not known: `inputs` then has that of an earlier Run, for comparison only, and no Run may start. */
  readonly isResolved: boolean
  readonly configuration: RunSpec['configuration']
  /** The Run that applied it; undefined if the present spec is used. */
  readonly appliedBy: Run | undefined
}

/** Evaluated by its first call: few decisions need it, and it copies the spec. */
export type LazyDestruction = () => Destruction | undefined

export function lazyDestruction(...args: Parameters<typeof destructionOf>): LazyDestruction {
  let known: { readonly destruction: Destruction | undefined } | undefined
  return () => {
    known ??= { destruction: destructionOf(...args) }
    return known.destruction
  }
}

/**
 * A Destroy uses what was applied last, because the present source may be broken, or may not know the resources. The present one is used if a user requests that, and while nothing was applied.
 * Undefined while the revision of the present source is needed and neither known nor that of an earlier Run.
 */
export function destructionOf(input: StackInput, runs: readonly Run[], record: StackRecord): Destruction | undefined {
  const { stack, revision, inputsDigest, specErrors } = input
  const present = specVersionOf(stack)
  const isCurrent = usesCurrentSource(stack)
  const appliedBy = isCurrent ? undefined : lastApplied(runs, record.applied)
  if (appliedBy) {
    const { spec } = appliedBy
    // An invalid spec cannot destroy what a valid one created.
    const version = { ...present, spec: specErrors.length > 0 ? spec.stack : withInfrastructureOf(present.spec, spec.stack) }
    const inputs = { generation: present.generation, revision: spec.revision, inputsDigest: spec.inputsDigest }
    return { version, inputs, isResolved: true, configuration: 'Applied', appliedBy }
  }
  const lastMutating = runs.findLast(run => isMutating(run.spec.type))
  const applied = record.applied?.revision ?? lastMutating?.spec.revision
  // The source of an invalid spec is not resolved.
  const isInvalid = specErrors.length > 0
  // Who requests the present source does not want the one before it: only what such a Run used counts as known.
  const known = isCurrent && !isInvalid ? runs.findLast(usesPresent)?.spec.revision : applied
  const isApplied = !isCurrent && record.applied?.specDigest === specDigest(present.spec, 'infrastructure')
  const used = isApplied ? known : typeof revision === 'string' ? revision : known
  if (used === undefined) return undefined
  const isResolved = isApplied || isInvalid || typeof revision === 'string' || (!isCurrent && revision !== undefined)
  const version = isInvalid && lastMutating ? { ...present, spec: lastMutating.spec.stack } : present
  const wasApplied = record.applied !== undefined || runs.some(mayHaveWritten)
  return {
    version,
    inputs: { generation: present.generation, revision: used, inputsDigest },
    isResolved,
    configuration: !isCurrent && wasApplied ? 'Applied' : undefined,
    appliedBy: undefined,
  }
}

/** Whether a user has requested that the Stack is destroyed with its present source. */
export const usesCurrentSource = ({ metadata }: Stack): boolean => metadata.annotations?.[annotations.destroySource] === 'Current'

/** True for a Destroy with the present source, and the plan of one. */
const usesPresent = (run: Run): boolean => (run.spec.type === 'Destroy' || isDestroyPlan(run)) && run.spec.configuration === undefined

/**
 * The Run whose source and inputs were applied last, completely or in part. `applied` names a Plan if it has found that nothing was to be applied. A lost Run without
 * a sign of its Apply counts only if no other is left.
 */
export function lastApplied(runs: readonly Run[], applied: StackRecord['applied']): Run | undefined {
  const isApply = (run: Run) => run.spec.type === 'Apply' && mayHaveWritten(run)
  const hasBegun = (run: Run) => phaseOf(run) === 'Succeeded' || run.status?.plan !== undefined || run.status?.stateVersion !== undefined
  return runs.findLast(run => run.metadata.name === applied?.runName || (isApply(run) && hasBegun(run))) ?? runs.findLast(isApply)
}

/** Whether the source and inputs that were applied last differ from the present ones, and are used. */
export function differsFromPresent({ version, appliedBy, inputs }: Destruction, { stack, revision }: StackInput): boolean {
  if (!appliedBy) return false
  const digest = (spec: StackSpec) => specDigest(spec, 'infrastructure')
  return digest(version.spec) !== digest(stack.spec) || (typeof revision === 'string' && revision !== inputs.revision)
}
