import type { KubeObject } from '../../kubernetes/object/index.ts'

export const copyAnnotations = {
  /** On a copy: the resource version that the object had at home. */
  homeVersion: 'oarlock.dev/home-resource-version',
} as const

/** kube-apiserver's own objects have this label; every server creates them for itself. */
const bootstrapLabel = 'kubernetes.io/bootstrapping'

export type CopyDecision =
  | { readonly kind: 'none' }
  /** Of home's object, to be applied with force. */
  | { readonly kind: 'apply'; readonly object: KubeObject<Record<string, unknown>> }
  /** Exactly this copy: what someone else has created meanwhile stays. */
  | { readonly kind: 'delete'; readonly uid: string }

/** What to do with the copy of an object of home: `source` is undefined if home does not have it, `copy` if this partition does not. */
export function decideCopy(source: KubeObject<Record<string, unknown>> | undefined, copy: KubeObject<unknown> | undefined): CopyDecision {
  const isOurs = copy?.metadata.annotations?.[copyAnnotations.homeVersion] !== undefined
  if (!source || source.metadata.deletionTimestamp) return copy && isOurs ? { kind: 'delete', uid: copy.metadata.uid } : { kind: 'none' }
  const { name, labels = {}, annotations = {}, resourceVersion } = source.metadata
  if (labels[bootstrapLabel] !== undefined) return { kind: 'none' }
  if (copy?.metadata.annotations?.[copyAnnotations.homeVersion] === resourceVersion) return { kind: 'none' }
  // The status is that of this server, or of its controllers.
  const { metadata: _, status: __, ...content } = source
  const metadata = { name, labels, annotations: { ...annotations, [copyAnnotations.homeVersion]: resourceVersion } }
  return { kind: 'apply', object: { ...content, metadata } as unknown as KubeObject<Record<string, unknown>> }
}
