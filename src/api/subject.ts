import type { Run } from './run.ts'

/** What a Run changes; at most one mutating Run of a subject is active at a time (invariant 1). Always a Stack: a managed resource is a subject by the Stack that it owns (`controllers/managed/dispatch/`). */
export type Subject = { readonly kind: 'Stack'; readonly namespace: string; readonly name: string; readonly uid: string }

export function subjectOf({ metadata, spec }: Pick<Run, 'metadata' | 'spec'>): Subject {
  const { name, uid } = spec.stackRef
  return { kind: 'Stack', namespace: metadata.namespace ?? '', name, uid }
}
