import type { KubeObject } from '../../kubernetes/object/index.ts'

type Kind = 'Run' | 'Worker' | 'WorkerPool' | 'Tenant'

/** The version of an object that a decision was based on. The write of the decision is rejected if the object has changed since (invariant 7). */
export type ObjectVersion = {
  readonly kind: Kind
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
}

export function versionOf(kind: Kind, { metadata }: Pick<KubeObject<unknown>, 'metadata'>): ObjectVersion {
  const { namespace = '', name, uid, resourceVersion } = metadata
  return { kind, namespace, name, uid, resourceVersion }
}

/** Identifies the object, whatever its version. */
export const objectIdOf = ({ kind, namespace, name }: ObjectVersion): string => `${kind}/${namespace}/${name}`
