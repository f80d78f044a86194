import { isMetadataOnly, metadataOnly } from '../client/index.ts'
import { type KubeObject, objectKey, parseApiVersion, type Resource } from '../object/index.ts'
import { coerceError, type Log } from '../util/log.ts'
import { lowPriority, normalPriority, type WorkQueue } from '../util/work-queue.ts'
import type { ChangeHandler } from './change-handlers.ts'
import type { Informer, InformerOptions } from './informer.ts'
import type { Change, Predicate } from './predicates.ts'

/** Changes of another kind, mapped to the keys that they affect. {@link watching} infers the object's type. */
export type WatchSource = {
  readonly resource: Resource<unknown>
  /** Called for the old and the new object of an update. */
  map(object: KubeObject): readonly string[]
  predicate?: Predicate | undefined
  informer?: InformerOptions<unknown> | undefined
  /** Batches changes for this time, so that many of them cause one reconcile; default 0. */
  delayMs?: number | undefined
}

/** A kind owned by `for`, with a filter for the changes that matter. */
export type OwnedSource = Pick<WatchSource, 'resource' | 'predicate' | 'informer' | 'delayMs'>

/** Declares a {@link WatchSource} whose `map` receives typed objects. */
export function watching<Body>(
  resource: Resource<Body>,
  map: (object: KubeObject<Body>) => readonly string[],
  options: { predicate?: Predicate<Body> | undefined; informer?: InformerOptions<Body> | undefined; delayMs?: number | undefined } = {},
): WatchSource {
  return { resource, map, ...options } as unknown as WatchSource
}

/** A source of keys: subscribed to its informer, it fills the queue. */
export type Source = {
  informer: Informer<unknown>
  /** The cluster that its keys belong to; undefined for a controller without `clusters`. */
  cluster: string | undefined
  /** Whether its keys are those of its own objects: true for `for`. */
  isOwn: boolean
  keysOf: (object: KubeObject<unknown>) => readonly string[]
  passes: (change: Change) => boolean
  delayMs: number
  priorityOf?: ((object: KubeObject<unknown>) => number) | undefined
}

/** The part of a controller's options that declares where its keys come from. */
export type SourceOptions = {
  for: Resource<unknown>
  predicates?: Predicate[] | undefined
  priority?: ((object: KubeObject<unknown>) => number) | undefined
  informer?: InformerOptions<unknown> | undefined
  owns?: (Resource<unknown> | OwnedSource)[] | undefined
  watches?: WatchSource[] | undefined
}

/** The entries of `owns`, each as a source. */
export function ownedSourcesOf(owns: SourceOptions['owns'] = []): OwnedSource[] {
  return owns.map(kind => ('resource' in kind ? (kind as OwnedSource) : { resource: kind }))
}

type FindInformer = (resource: Resource<unknown>, options: InformerOptions<unknown>) => Informer<unknown>

/** The sources of one cluster; the first is `for`. */
export function sourcesOf(
  options: SourceOptions,
  cluster: string | undefined,
  find: FindInformer,
  isSharded = false,
): [Source, ...Source[]] {
  const { for: resource, predicates = [], owns = [], watches = [], informer, priority } = options
  const inCluster = (wanted: InformerOptions<unknown> = {}, sharded?: 'root' | 'owned') => ({
    ...(cluster !== undefined && { cluster }),
    ...(isSharded && sharded && { sharded }),
    ...wanted,
  })
  const own: Source = {
    informer: find(resource, inCluster(informer, 'root')),
    cluster,
    isOwn: true,
    keysOf: object => [objectKey(object)],
    passes: change => predicates.every(predicate => predicate(change)),
    delayMs: 0,
    priorityOf: priority,
  }
  const owned = ownedSourcesOf(owns).map((source): Source => {
    return {
      informer: find(source.resource, inCluster(source.informer, 'owned')),
      cluster,
      isOwn: false,
      keysOf: object => ownerKeys(object, resource),
      passes: change => source.predicate?.(change) ?? true,
      delayMs: source.delayMs ?? 0,
    }
  })
  const watched = watches.map(
    (watch): Source => ({
      informer: find(isSharded ? sharedResourceOf(watch) : watch.resource, inCluster(watch.informer)),
      cluster,
      isOwn: false,
      keysOf: object => watch.map(object as KubeObject),
      passes: change => watch.predicate?.(change) ?? true,
      delayMs: watch.delayMs ?? 0,
    }),
  )
  return [own, ...owned, ...watched]
}

/** Every replica watches what many roots refer to: of Secrets and ConfigMaps it keeps the metadata only, unless a transform chooses what to keep. */
function sharedResourceOf({ resource, informer }: WatchSource): Resource<unknown> {
  const isLarge = resource.apiVersion === 'v1' && (resource.kind === 'Secret' || resource.kind === 'ConfigMap')
  return isLarge && !informer?.transform && !isMetadataOnly(resource) ? metadataOnly(resource) : resource
}

/** The watched kinds of which a sharded controller keeps less than one that is not sharded. */
export function reducedWatchesOf(watches: readonly WatchSource[] = []): string[] {
  return [...new Set(watches.filter(watch => sharedResourceOf(watch) !== watch.resource).map(({ resource }) => resource.plural))]
}

/** The queue's key. The names of clusters and objects never contain a bar. */
export function queueKey(cluster: string | undefined, key: string): string {
  return cluster === undefined ? key : `${cluster}|${key}`
}

/** The inverse of {@link queueKey}. */
export function parseQueueKey(text: string): { cluster: string | undefined; key: string } {
  const bar = text.indexOf('|')
  return bar < 0 ? { cluster: undefined, key: text } : { cluster: text.slice(0, bar), key: text.slice(bar + 1) }
}

/** The reference to what controls an object if that is of the kind `owner`, whatever version the reference has. */
export function controllerOf({ ownerReferences }: KubeObject<unknown>['metadata'], owner: Resource<unknown>) {
  const reference = ownerReferences?.find(({ controller }) => controller)
  const isOfKind = reference && reference.kind === owner.kind && parseApiVersion(reference.apiVersion).group === owner.group
  return isOfKind ? reference : undefined
}

/** The key of the controlling owner of `object` if that is of this kind. */
function ownerKeys({ metadata }: KubeObject<unknown>, owner: Resource<unknown>): string[] {
  const reference = controllerOf(metadata, owner)
  if (!reference) return []
  return [owner.scope === 'Namespaced' ? `${metadata.namespace}/${reference.name}` : reference.name]
}

/** The change handler that subscribes a source to its informer. */
export function handlerOf(
  source: Source,
  queue: WorkQueue,
  log: Log,
  admits?: (key: string, object: KubeObject<unknown>, isRoot: boolean) => boolean,
): ChangeHandler<unknown> {
  const changed = (change: Change) => {
    // A predicate that throws must not hide a change: an extra reconcile is harmless, a missing one is not.
    let passes = true
    try {
      passes = source.passes(change)
    } catch (error) {
      log.error({ err: coerceError(error) }, 'predicate threw, enqueuing the change')
    }
    if (!passes) return
    const { delayMs, priorityOf, cluster } = source
    const { object } = change
    const defaultPriority = change.type === 'added' && change.isInitial ? lowPriority : normalPriority
    const priority = priorityOf ? safePriority(priorityOf, object, defaultPriority, log) : defaultPriority
    const keys = source.keysOf(object)
    const add = (key: string) => {
      const text = queueKey(cluster, key)
      if (!admits || admits(text, object, source.isOwn)) queue.add(text, { priority, delayMs })
    }
    for (const key of keys) add(key)
    // An object's own key never changes, so `old` need not be unpacked.
    if (change.type !== 'updated' || source.isOwn) return
    // Each key once: a second add may find it already running and cause a superfluous reconcile.
    for (const key of source.keysOf(change.old)) if (!keys.includes(key)) add(key)
  }
  return { changed }
}

/** What a priority function returns, or the default if it throws or returns no number. */
export function safePriority(
  of: (object: KubeObject<unknown>) => number,
  object: KubeObject<unknown>,
  defaultPriority: number,
  log: Log,
): number {
  try {
    const priority = of(object)
    return typeof priority === 'number' && !Number.isNaN(priority) ? priority : defaultPriority
  } catch (error) {
    log.error({ err: coerceError(error) }, 'priority function threw, using the default priority')
    return defaultPriority
  }
}
