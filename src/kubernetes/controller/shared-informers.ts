import { type Client, isMetadataOnly } from '../client/index.ts'
import { type KubeObject, type OwnerReference, parseApiVersion, type Resource } from '../object/index.ts'
import type { Log } from '../util/log.ts'
import type { ChangingSelector } from './changing-selector.ts'
import { Informer, type InformerOptions, type InformerParts } from './informer.ts'
import { SelectorSource } from './selector-source.ts'
import { bucketIndex, bucketLabel, bucketOf } from './sharding/bucket.ts'
import type { Shards } from './sharding/shards.ts'

/** What a new informer gets from its manager. `onCreated` is called once, for an informer that did not exist. */
type InformerContext<Body> = {
  client: Client
  log: Log
  listWatch: InformerParts<Body>['listWatch']
  /** What fills a sharded cache; its index by bucket is read through `keysOf`. */
  shards?: Shards | undefined
  onCreated(informer: Informer<unknown>): void
}

/** The informers of one manager: one per kind and selection, however many controllers use it. */
export class SharedInformers {
  readonly #bySelection = new Map<string, { informer: Informer<unknown>; transform: unknown }>()
  readonly #selectorIds = new Map<ChangingSelector, number>()
  /** The same by cluster, version and plural, whatever their selection: the caches that may hold what a write changed. */
  readonly #byKind = new Map<string, Informer<unknown>[]>()

  /**
   * The informer of `resource` and the selection in `options`, created if it does not exist. Indexes of `options` are added.
   * @throws {TypeError} if it exists with another transform.
   */
  get<Body>(resource: Resource<Body>, options: InformerOptions<Body>, context: InformerContext<Body>): Informer<Body> {
    const { cluster, indexes = {}, transform } = options
    const { selector } = options
    const selectorId = selector ? (this.#selectorIds.get(selector) ?? this.#selectorIds.size + 1) : 0
    if (selector) this.#selectorIds.set(selector, selectorId)
    const key = `${selectionKey(resource, options)}|${selectorId}`
    let shared = this.#bySelection.get(key)
    if (!shared) {
      const { client, log, listWatch } = context
      const parts = { ...options, client, resource, log, listWatch }
      const created = options.sharded
        ? shardedInformer(parts, options.sharded, context.shards)
        : options.selector
          ? selectedInformer(parts, options.selector)
          : new Informer<Body>(parts)
      shared = { informer: created as unknown as Informer<unknown>, transform }
      this.#bySelection.set(key, shared)
      const kind = kindKey(cluster, resource)
      this.#byKind.set(kind, [...(this.#byKind.get(kind) ?? []), shared.informer])
      context.onCreated(shared.informer)
    } else if (transform && shared.transform !== transform) {
      throw new TypeError(
        `the informer of ${resource.plural} already exists with another transform: declare the transform where the informer is first requested`,
      )
    }
    const informer = shared.informer as unknown as Informer<Body>
    for (const [name, valuesOf] of Object.entries(indexes)) informer.addIndex(name, valuesOf)
    return informer
  }

  all(): Informer<unknown>[] {
    return [...this.#bySelection.values()].map(({ informer }) => informer)
  }

  /** The labels of the object that a reference in `namespace` names, by UID; undefined if no cache has it. */
  labelsOf(
    cluster: string | undefined,
    { apiVersion, kind, name, uid }: OwnerReference,
    namespace: string,
  ): Readonly<Record<string, string>> | undefined {
    const { group } = parseApiVersion(apiVersion)
    for (const informer of this.all()) {
      const { resource } = informer
      if (informer.cluster !== cluster || resource.kind !== kind || resource.group !== group) continue
      const key = resource.scope === 'Namespaced' ? `${namespace}/${name}` : name
      if (informer.uidOf(key) === uid) return informer.get(key)?.metadata.labels
    }
    return undefined
  }

  ofKind(cluster: string | undefined, resource: Resource<unknown>): readonly Informer<unknown>[] {
    return this.#byKind.get(kindKey(cluster, resource)) ?? []
  }
}

function shardedInformer<Body>(parts: InformerParts<Body>, by: 'root' | 'owned', shards: Shards | undefined): Informer<Body> {
  const { resource, labelSelector, indexes, shardSelector } = parts
  if (!shards) throw new TypeError(`the informer of ${resource.plural} cannot be sharded: the manager has no shards`)
  if (shardSelector) throw new TypeError(`the informer of ${resource.plural} has a shardSelector: a sharded one selects its buckets alone`)
  const bucketsOf = ({ metadata }: KubeObject<unknown>) => [String(by === 'root' ? bucketOf(metadata.uid) : metadata.labels?.[bucketLabel])]
  const source = shards.source({ by, labelSelector, keysOf: bucket => informer.indexKeys(bucketIndex, String(bucket)) })
  const informer: Informer<Body> = new Informer<Body>({ ...parts, source, indexes: { ...indexes, [bucketIndex]: bucketsOf } })
  return informer
}

function selectedInformer<Body>(parts: InformerParts<Body>, selector: ChangingSelector): Informer<Body> {
  const { resource, labelSelector } = parts
  if (labelSelector !== undefined)
    throw new TypeError(`the informer of ${resource.plural} has a labelSelector and a selector: use one of them`)
  const objects = function* () {
    for (const key of informer.keys()) {
      const object = informer.get(key)
      if (object) yield [key, object] as const
    }
  }
  const informer: Informer<Body> = new Informer<Body>({ ...parts, source: new SelectorSource(selector, objects) })
  return informer
}

function selectionKey<Body>(resource: Resource<Body>, options: InformerOptions<Body>): string {
  const { cluster = '', namespace = '', labelSelector = '', fieldSelector = '', shardSelector = '', sharded = '' } = options
  const isPartial = isMetadataOnly(resource) ? 'metadata' : ''
  return [cluster, resource.apiVersion, resource.plural, isPartial, namespace, labelSelector, fieldSelector, shardSelector, sharded].join(
    '|',
  )
}

function kindKey(cluster: string | undefined, { apiVersion, plural }: Resource<unknown>): string {
  return `${cluster ?? ''}|${apiVersion}|${plural}`
}
