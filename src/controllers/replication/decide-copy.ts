import type { KubeObject } from '../../kubernetes/object/index.ts'

export const copyAnnotations = {
  /** On a copy: the resource version that the object had at home. */
  homeVersion: 'oarlock.dev/home-resource-version',
} as const

/** On a definition at home, with the name of a partition: the generation of it that is Established there. */
export const establishedPrefix = 'established.oarlock.dev/'

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
  const copied = Object.fromEntries(Object.entries(annotations).filter(([key]) => !key.startsWith(establishedPrefix)))
  const metadata = { name, labels, annotations: { ...copied, [copyAnnotations.homeVersion]: resourceVersion } }
  return { kind: 'apply', object: { ...content, metadata } as unknown as KubeObject<Record<string, unknown>> }
}

type Definition = KubeObject<{ status?: { conditions?: readonly { type: string; status: string }[] } }>

/**
 * What a partition reports to home about its copy of a definition: the generation that is Established here, as an annotation of the source; `wait` while the
 * copy is not Established.
 */
export function decideReport(
  source: KubeObject<unknown>,
  copy: KubeObject<unknown>,
  partition: string,
): { readonly kind: 'none' | 'wait' } | { readonly kind: 'report'; readonly annotations: Readonly<Record<string, string>> } {
  const { annotations = {}, generation = 0 } = source.metadata
  const conditions = (copy as Definition).status?.conditions ?? []
  if (!conditions.some(({ type, status }) => type === 'Established' && status === 'True')) return { kind: 'wait' }
  const key = establishedPrefix + partition
  if (annotations[key] === String(generation)) return { kind: 'none' }
  return { kind: 'report', annotations: { [key]: String(generation) } }
}

/**
 * Why a definition of home is not Established for all: undefined if each partition has reported its generation, or a later one.
 * @param partitions all but home.
 */
export function notEstablishedIn(crd: KubeObject<unknown>, partitions: readonly string[]): string | undefined {
  const { annotations = {}, generation = 0 } = crd.metadata
  const missing = partitions.filter(name => !(Number(annotations[establishedPrefix + name]) >= generation))
  if (missing.length === 0) return undefined
  return `not Established in ${missing.length === 1 ? 'partition' : 'partitions'} ${missing.join(', ')} yet`
}
