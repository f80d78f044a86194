import type { Run, Stack, StackSpec, StackStatus } from '../../api/index.ts'
import { isSameSpec, type SpecScope, specDigest } from './spec-effects.ts'

/** What an Apply depends on. Two Runs with equal inputs do the same work. */
export type Inputs = { readonly generation: number; readonly revision: string; readonly inputsDigest: string }

/** A spec and its generation. */
export type SpecVersion = { readonly generation: number; readonly spec: StackSpec }

export const specVersionOf = ({ metadata, spec }: Pick<Stack, 'metadata' | 'spec'>): SpecVersion => ({
  generation: metadata.generation ?? 1,
  spec,
})

/** The inputs of a Run. They have the generation of `current` if its spec is the same in `scope`. */
export function inputsOf({ spec: run }: Pick<Run, 'spec'>, current: SpecVersion, scope: SpecScope): Inputs {
  const { stackRef, stack, revision, inputsDigest } = run
  const isCurrent = stackRef.generation === current.generation || isSameSpec(stack, current.spec, scope)
  return { generation: isCurrent ? current.generation : stackRef.generation, revision, inputsDigest }
}

/** False when either is undefined. */
export function sameInputs(a: Inputs | undefined, b: Inputs | undefined): boolean {
  return (
    a !== undefined && b !== undefined && a.generation === b.generation && a.revision === b.revision && a.inputsDigest === b.inputsDigest
  )
}

/** What is applied and what awaits approval, with the generation of `current` if nothing that they depend on has changed since. */
export function carryGenerationsOver<Record extends Pick<StackStatus, 'applied' | 'plan'>>(record: Record, current: SpecVersion): Record {
  const applied = carryGenerationOver(record.applied, current, 'infrastructure')
  // Who approved a plan approved how it is applied, too.
  const plan = carryGenerationOver(record.plan, current, 'execution')
  return applied === record.applied && plan === record.plan ? record : { ...record, applied, plan }
}

function carryGenerationOver<T extends { generation: number; specDigest?: string }>(
  recorded: T | undefined,
  { generation, spec }: SpecVersion,
  scope: SpecScope,
): T | undefined {
  if (!recorded || recorded.generation === generation || recorded.specDigest === undefined) return recorded
  return recorded.specDigest === specDigest(spec, scope) ? { ...recorded, generation } : recorded
}

/** True when `inputs` are applied completely. False when a Run with other inputs has ended halfway since. */
export function areApplied(inputs: Inputs | undefined, applied: StackStatus['applied']): boolean {
  return applied?.overwrittenBy === undefined && sameInputs(applied, inputs)
}

/** Why `current` requires a Run when `applied` was applied last. If they are equal, a Run has ended halfway since ({@link areApplied}). */
export function changeReason(
  applied: Inputs | undefined,
  current: Inputs,
): 'NewGeneration' | 'SourceChanged' | 'InputsChanged' | 'ApplyIncomplete' {
  if (applied === undefined || applied.generation !== current.generation) return 'NewGeneration'
  if (applied.revision !== current.revision) return 'SourceChanged'
  return applied.inputsDigest === current.inputsDigest ? 'ApplyIncomplete' : 'InputsChanged'
}
