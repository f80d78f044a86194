import type { Run } from '../../api/index.ts'

/** What an Apply depends on. Two Runs with equal inputs do the same work. */
export type Inputs = { readonly generation: number; readonly revision: string; readonly inputsDigest: string }

export function inputsOf(run: Pick<Run, 'spec'>): Inputs {
  const { stackRef, revision, inputsDigest } = run.spec
  return { generation: stackRef.generation, revision, inputsDigest }
}

/** False when either is undefined. */
export function sameInputs(a: Inputs | undefined, b: Inputs | undefined): boolean {
  return (
    a !== undefined && b !== undefined && a.generation === b.generation && a.revision === b.revision && a.inputsDigest === b.inputsDigest
  )
}

/** Why `current` requires a Run when `applied` was applied last. */
export function changeReason(applied: Inputs | undefined, current: Inputs): 'NewGeneration' | 'SourceChanged' | 'InputsChanged' {
  if (applied === undefined || applied.generation !== current.generation) return 'NewGeneration'
  return applied.revision !== current.revision ? 'SourceChanged' : 'InputsChanged'
}
