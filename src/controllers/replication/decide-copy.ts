import { equalJson, type KubeObject } from '../../kubernetes/object/index.ts'

/** On a copy, of its object at home when its content was copied last. */
export const copyAnnotations = {
  homeVersion: 'oarlock.dev/home-resource-version',
  homeGeneration: 'oarlock.dev/home-generation',
} as const

/** The generation of its object at home that a copy is of; 0: that was not recorded. */
export const homeGenerationOf = ({ metadata }: Pick<KubeObject<unknown>, 'metadata'>): number =>
  Number(metadata.annotations?.[copyAnnotations.homeGeneration] ?? 0)

/** On a definition at home, with the name of a partition: the generation of it that is Established there. */
export const establishedPrefix = 'established.oarlock.dev/'

type Body = Record<string, unknown>

export type CopyDecision =
  | { readonly kind: 'none' }
  | { readonly kind: 'create'; readonly object: KubeObject<Body> }
  /** At the version of the copy that was read. */
  | { readonly kind: 'update'; readonly object: KubeObject<Body> }
  /** Exactly this copy: what someone else has created meanwhile stays. */
  | { readonly kind: 'delete'; readonly uid: string }

/**
 * What to do with the copy of an object of home: `source` is undefined if home does not have it, `copy` if this partition does not. A copy has the labels,
 * annotations and content of its source and nothing else. The status, finalizers and owners are those of this server and its controllers: a new status
 * at home changes no copy. A new generation does, even if the content is that of the copy again: gateways must learn that it has changed meanwhile.
 */
export function decideCopy(source: KubeObject<Body> | undefined, copy: KubeObject<unknown> | undefined): CopyDecision {
  const isOurs = copy?.metadata.annotations?.[copyAnnotations.homeVersion] !== undefined
  if (!source || source.metadata.deletionTimestamp) return copy && isOurs ? { kind: 'delete', uid: copy.metadata.uid } : { kind: 'none' }
  const content = contentOf(source)
  const { generation } = source.metadata
  const isSameGeneration = copy?.metadata.annotations?.[copyAnnotations.homeGeneration] === generation?.toString()
  if (copy && isOurs && isSameGeneration && equalJson(contentOf(copy as KubeObject<Body>), content)) return { kind: 'none' }
  const { labels, annotations, ...body } = content
  const { name, resourceVersion: homeVersion } = source.metadata
  const own = { [copyAnnotations.homeVersion]: homeVersion, ...(generation && { [copyAnnotations.homeGeneration]: String(generation) }) }
  const metadata = { name, labels, annotations: { ...annotations, ...own } }
  if (!copy) return { kind: 'create', object: { ...body, metadata } as unknown as KubeObject<Body> }
  const { uid, resourceVersion, finalizers, ownerReferences } = copy.metadata
  const kept = { uid, resourceVersion, ...(finalizers && { finalizers }), ...(ownerReferences && { ownerReferences }) }
  const { status } = copy as { status?: unknown }
  const updated = { ...body, metadata: { ...metadata, ...kept }, ...(status !== undefined && { status }) }
  return { kind: 'update', object: updated as unknown as KubeObject<Body> }
}

const ownAnnotations: ReadonlySet<string> = new Set(Object.values(copyAnnotations))

/** What is copied of an object: its labels, its annotations, and everything else but metadata and status. */
function contentOf({ metadata: { labels = {}, annotations = {} }, status: _, ...body }: KubeObject<Body>) {
  const isCopied = (key: string) => !ownAnnotations.has(key) && !key.startsWith(establishedPrefix)
  return { ...body, labels, annotations: Object.fromEntries(Object.entries(annotations).filter(([key]) => isCopied(key))) }
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
