import { type Client, compareResourceVersions, type ListWatchOptions, listWatch } from '../client/index.ts'
import {
  isReason,
  type KubeObject,
  matchesFields,
  matchesLabels,
  objectKey,
  parseFieldSelector,
  parseLabelSelector,
  parseShardSelector,
  type Resource,
  shardTest,
  type WatchEvent,
} from '../kube/index.ts'
import { coerceError, type Log, silentLog } from './log.ts'
import { ObjectIndex } from './object-index.ts'
import { ObjectStore } from './object-store.ts'
import type { Change } from './predicates.ts'

export type InformerOptions<Body> = {
  /** Which of the manager's clusters; default: the manager's own client. */
  cluster?: string
  /** Default: all namespaces. */
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  /**
   * A part of the objects by hash of their uid or namespace, as `shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')`.
   * Where the server knows `shardSelector` (Kubernetes 1.36 with ShardedListAndWatch, the embedded server) it sends no others; else they are
   * left out here.
   */
  shardSelector?: string
  /** Names and functions for {@link Informer.byIndex}. */
  indexes?: Record<string, (object: KubeObject<Body>) => readonly string[]>
  /** What to keep of an object; default: all but `metadata.managedFields`. Must keep apiVersion, kind, name, namespace, uid and resourceVersion. */
  transform?: (object: KubeObject<Body>) => KubeObject<Body>
  /**
   * How many objects are kept ready to read, default 20,000. The others are kept as JSON text, half the size, and each
   * read of one parses it (some microseconds); a `list()` of everything parses all of them. Infinity keeps all ready.
   */
  hotObjects?: number
}

/** What an informer needs beside its options; the manager brings it. */
export type InformerParts<Body> = InformerOptions<Body> & {
  client: Client
  resource: Resource<Body>
  log?: Log
  /** For tests and slow networks: everything of list+watch that may be set. */
  listWatch?: Partial<
    Pick<ListWatchOptions<Body>, 'backoff' | 'watchTimeoutMs' | 'idleTimeoutMs' | 'pageSize' | 'streamLists' | 'clock' | 'random'>
  >
}

/** Told after the cache changed. `isInitial` is true for what was there when the cache was filled or the handler came. */
export type ChangeHandler<Body> = {
  /**
   * All three in one, instead of the others. The cheap form: `old` of an update is read from the cache's compact form only
   * when it is looked at, which must be before the handler returns.
   */
  changed?(change: Change<Body>): void
  added?(object: KubeObject<Body>, isInitial: boolean): void
  updated?(old: KubeObject<Body>, object: KubeObject<Body>): void
  deleted?(object: KubeObject<Body>): void
}

/**
 * A cache of one kind, kept equal to the server's state by list+watch. What it returns is shared by all readers and frozen:
 * copy first (`structuredClone`), then change. Handlers see the same objects before they are frozen, and must not change them.
 */
export class Informer<Body = { [field: string]: unknown }> {
  readonly resource: Resource<Body>
  /** Which of the manager's clusters it follows; undefined for the manager's own client. */
  readonly cluster: string | undefined
  readonly #client: Client
  readonly #options: InformerParts<Body>
  readonly #log: Log
  readonly #transform: (object: KubeObject<Body>) => KubeObject<Body>
  readonly #selects: (object: KubeObject<Body>) => boolean
  readonly #isInShard: (object: KubeObject<unknown>) => boolean
  readonly #objects: ObjectStore<Body>
  readonly #indexes = new Map<string, ObjectIndex<KubeObject<Body>>>()
  /** Made when somebody asks for one namespace: an index costs some 50 bytes an object. */
  #byNamespace: ObjectIndex<KubeObject<Body>> | undefined
  readonly #handlers = new Set<ChangeHandler<Body>>()
  /** Keys that hold the answer of a write which the watch has not brought yet, with its version. */
  readonly #local = new Map<string, string>()
  /** The same the other way round, and of earlier writes to the same key too: versions that need not be read when they come. */
  readonly #echoes = new Map<string, string>()
  readonly #synced = Promise.withResolvers<void>()
  /** Everything up to here has been seen. Invariant: never behind any object that came from the watch. */
  #resourceVersion = ''
  #hasSynced = false
  /** Keys that came with the present attempt to fill the cache, while there is one that hands its parts on. */
  #filling: Set<string> | undefined
  #lastError: Error | undefined

  constructor(parts: InformerParts<Body>) {
    const { client, resource, log = silentLog, indexes = {} } = parts
    this.resource = resource
    this.cluster = parts.cluster
    this.#client = client
    this.#objects = new ObjectStore(parts.hotObjects ?? 20_000)
    this.#options = parts
    this.#log = log.child({ informer: resource.plural })
    this.#transform = parts.transform ?? dropManagedFields
    this.#selects = selection(parts)
    this.#isInShard = shardOf(parts.shardSelector)
    for (const [name, valuesOf] of Object.entries(indexes)) this.addIndex(name, valuesOf)
  }

  /** True once the cache has been filled for the first time. */
  get hasSynced(): boolean {
    return this.#hasSynced
  }

  /** Why the cache cannot be kept up to date just now, such as a missing CRD; undefined while all is well. */
  get lastError(): Error | undefined {
    return this.#lastError
  }

  /** Number of objects. */
  get size(): number {
    return this.#objects.size
  }

  /** Resolves when {@link hasSynced} becomes true, or when `signal` aborts. */
  async whenSynced(signal?: AbortSignal): Promise<void> {
    if (this.#hasSynced || signal?.aborted) return
    if (!signal) return this.#synced.promise
    const aborted = Promise.withResolvers<void>()
    const onAbort = () => aborted.resolve()
    signal.addEventListener('abort', onAbort, { once: true })
    await Promise.race([this.#synced.promise, aborted.promise])
    signal.removeEventListener('abort', onAbort)
  }

  /** Keeps the cache up to date until `signal` aborts; the manager calls it. */
  async start(signal: AbortSignal): Promise<void> {
    const { namespace, labelSelector, fieldSelector, shardSelector } = this.#options
    await listWatch(this.#client, this.resource, {
      namespace,
      labelSelector,
      fieldSelector,
      shardSelector,
      ...this.#options.listWatch,
      signal,
      parts: { begin: () => this.#beginFilling(), add: items => this.#fill(items) },
      onReplace: (items, resourceVersion) => this.#replace(items, resourceVersion),
      onEvent: event => this.#event(event),
      skipLine: line => this.#skip(line),
      onError: (error, retryInMs) => {
        this.#lastError = isReason(error, 'NotFound') ? this.#missing(error) : coerceError(error)
        this.#log.warn({ err: this.#lastError, retryInMs: Math.round(retryInMs) }, 'list+watch broke, trying again')
      },
    })
  }

  /** A list of a kind that exists is never NotFound, so it is the kind that is missing. */
  #missing(error: Error): Error {
    const { group, plural, version, apiVersion } = this.resource
    const wanted = group ? `is the CRD ${plural}.${group} applied, and does it serve ${version}?` : `does the server serve ${apiVersion}?`
    return new Error(`the server has no ${plural} of ${apiVersion} (${error.message}): ${wanted} it is asked again until it has`, {
      cause: error,
    })
  }

  /** The object under `namespace/name`, or `name` for a cluster-scoped kind. */
  get(key: string): KubeObject<Body> | undefined {
    return this.#objects.read(key)
  }

  /** Whether there is an object under `key`; reads nothing. */
  has(key: string): boolean {
    return this.#objects.stored(key) !== undefined
  }

  /** The keys of all objects. */
  keys(): IterableIterator<string> {
    return this.#objects.keys()
  }

  /** All objects, or those of one namespace, in no particular order. */
  list(namespace?: string): KubeObject<Body>[] {
    if (namespace === undefined) return this.#objects.values()
    this.#byNamespace ??= this.#build(({ metadata }) => [metadata.namespace ?? ''])
    return this.#resolve(this.#byNamespace.keys(namespace))
  }

  /** The objects that have `value` under an index. @throws {RangeError} for an index that was not declared. */
  byIndex(indexName: string, value: string): KubeObject<Body>[] {
    return this.#resolve(this.#indexed(indexName).keys(value))
  }

  /** The keys of what {@link byIndex} returns: reads no object, so it is the cheap way to count, compare or ask whether there is any. */
  indexKeys(indexName: string, value: string): string[] {
    return [...this.#indexed(indexName).keys(value)]
  }

  /** Declares an index, also later. A name that exists keeps its first function, so that several users may ask for it. */
  addIndex(name: string, valuesOf: (object: KubeObject<Body>) => readonly string[]): void {
    if (this.#indexes.has(name)) return
    this.#indexes.set(name, this.#build(valuesOf))
  }

  /** Calls `handler` for what is there and for every change after it; returns how to stop that. A handler that throws is logged and stays. */
  onChange(handler: ChangeHandler<Body>): () => void {
    this.#handlers.add(handler)
    for (const [, object] of this.#objects.objects()) this.#guard(() => tellAdded(handler, object, true))
    return () => this.#handlers.delete(handler)
  }

  /**
   * Puts the answer of a write into the cache, so that the next reconcile reads its own write even if the watch is
   * behind. Does nothing if the cache is as new already, or if the object is not of this selection; returns whether it did.
   */
  applyLocal(object: KubeObject<Body>): boolean {
    const key = objectKey(object)
    const version = object.metadata.resourceVersion
    const cached = this.#objects.stored(key)
    // Seen up to here: what the cache lacks at this version has been deleted since.
    if (!this.#hasSynced || compareResourceVersions(version, this.#resourceVersion) <= 0) return false
    if (cached && compareResourceVersions(version, cached.resourceVersion) <= 0) return false
    if (!this.#selects(object) || !this.#isInShard(object)) return false
    this.#local.set(key, version)
    this.#echoes.set(version, key)
    this.#put(key, this.#transform({ ...object, apiVersion: this.resource.apiVersion, kind: this.resource.kind }), false)
    return true
  }

  /** Only the first list is taken in parts: nobody relies on the cache yet, and it is the largest moment of a process. */
  #beginFilling(): boolean {
    if (this.#hasSynced) return false
    this.#filling = new Set()
    return true
  }

  #fill(items: KubeObject<Body>[]): void {
    for (const item of items) {
      if (!this.#isInShard(item)) continue
      const key = objectKey(item)
      this.#filling?.add(key)
      this.#put(key, this.#transform(item), true)
    }
  }

  #replace(items: KubeObject<Body>[], resourceVersion: string): void {
    const isInitial = !this.#hasSynced
    const filled = this.#filling
    this.#filling = undefined
    // A restored server counts from further back: then nothing we wrote before is there.
    if (compareResourceVersions(resourceVersion, this.#resourceVersion) < 0) this.#local.clear()
    const gone = new Set(this.#objects.keys())
    for (const key of filled ?? []) gone.delete(key)
    for (const item of items) {
      if (!this.#isInShard(item)) continue
      const key = objectKey(item)
      gone.delete(key)
      if (this.#isBehindLocal(key, resourceVersion)) continue
      this.#local.delete(key)
      this.#put(key, this.#transform(item), isInitial)
    }
    for (const key of gone) if (!this.#isBehindLocal(key, resourceVersion)) this.#drop(key)
    // Their events may not come any more, and those that do are only read for nothing.
    this.#echoes.clear()
    this.#resourceVersion = resourceVersion
    this.#lastError = undefined
    if (!this.#hasSynced) {
      this.#hasSynced = true
      this.#synced.resolve()
    }
  }

  #event({ type, object }: WatchEvent<KubeObject<Body>>): void {
    const { resourceVersion } = object.metadata
    if (type !== 'BOOKMARK') {
      const key = objectKey(object)
      const cached = this.#objects.stored(key)
      const age = cached ? compareResourceVersions(resourceVersion, cached.resourceVersion) : 1
      if (age >= 0) this.#local.delete(key)
      // Equal for a deletion: with a selector, the write that made an object leave it is reported as DELETED at its own version.
      if (type === 'DELETED') {
        if (cached && age >= 0) this.#drop(key, object)
      } else if (age > 0 && this.#isInShard(object)) {
        this.#put(key, this.#transform(object), false)
      }
    }
    if (compareResourceVersions(resourceVersion, this.#resourceVersion) > 0) this.#resourceVersion = resourceVersion
    this.#lastError = undefined
  }

  /** Whether a line of the watch only brings back what {@link applyLocal} put here; its version, if so. */
  #skip(line: string): string | undefined {
    // A deletion is never an echo: the answer of a write says what an object is, not that it is gone.
    if (this.#echoes.size === 0 || !(line.startsWith('{"type":"MODIFIED",') || line.startsWith('{"type":"ADDED",'))) return undefined
    const start = line.indexOf(versionField) + versionField.length
    if (start < versionField.length) return undefined
    const version = line.slice(start, line.indexOf('"', start))
    const key = this.#echoes.get(version)
    if (key === undefined) return undefined
    this.#echoes.delete(version)
    const cached = this.#objects.stored(key)
    // The version alone might be a field of another object that names this one.
    if (!cached || !line.includes(cached.uid)) return undefined
    if (this.#local.get(key) === version) this.#local.delete(key)
    if (compareResourceVersions(version, this.#resourceVersion) > 0) this.#resourceVersion = version
    this.#lastError = undefined
    return version
  }

  /** Whether the cache holds the answer of a write that came after a list at this version. */
  #isBehindLocal(key: string, resourceVersion: string): boolean {
    if (!this.#local.has(key)) return false
    const cached = this.#objects.stored(key)
    return cached !== undefined && compareResourceVersions(resourceVersion, cached.resourceVersion) < 0
  }

  #put(key: string, object: KubeObject<Body>, isInitial: boolean): void {
    const stored = this.#objects.stored(key)
    if (stored?.resourceVersion === object.metadata.resourceVersion && stored.uid === object.metadata.uid) return
    const isAnother = stored !== undefined && stored.uid !== object.metadata.uid
    const old = stored && this.#objects.later(key)
    this.#objects.set(key, object)
    if (this.#byNamespace || this.#indexes.size > 0) this.#index(key, old?.(), object)
    // Deleted and made again while we were away: handlers must see both, or what belonged to the old one is never cleaned up.
    if (old && isAnother) {
      this.#tell(handler => tellDeleted(handler, old()))
      this.#tell(handler => tellAdded(handler, object, isInitial))
    } else if (old) {
      this.#tell(handler => (handler.changed ? handler.changed(new Update(object, old)) : handler.updated?.(old(), object)))
    } else {
      this.#tell(handler => tellAdded(handler, object, isInitial))
    }
  }

  /** `last` is the state the server deleted, where the watch told it. */
  #drop(key: string, last?: KubeObject<Body>): void {
    if (!this.#objects.stored(key)) return
    const old = this.#objects.later(key)
    this.#local.delete(key)
    this.#objects.delete(key)
    if (this.#byNamespace || this.#indexes.size > 0) this.#index(key, old(), undefined)
    if (this.#handlers.size === 0) return
    const final = last ? this.#transform(last) : old()
    this.#tell(handler => tellDeleted(handler, final))
  }

  #index(key: string, old: KubeObject<Body> | undefined, next: KubeObject<Body> | undefined): void {
    this.#byNamespace?.replace(key, old, next)
    for (const [name, index] of this.#indexes) {
      try {
        index.replace(key, old, next)
      } catch (error) {
        this.#log.error({ err: coerceError(error), index: name, key }, 'index function threw, the object is not found under it')
      }
    }
  }

  #indexed(indexName: string): ObjectIndex<KubeObject<Body>> {
    const index = this.#indexes.get(indexName)
    if (index) return index
    const known = [...this.#indexes.keys()].join(', ') || 'none'
    throw new RangeError(`informer of ${this.resource.plural} has no index ${JSON.stringify(indexName)}: it has ${known}`)
  }

  #build(valuesOf: (object: KubeObject<Body>) => readonly string[]): ObjectIndex<KubeObject<Body>> {
    const index = new ObjectIndex(valuesOf)
    for (const [key, object] of this.#objects.objects()) index.replace(key, undefined, object)
    return index
  }

  #resolve(keys: Iterable<string>): KubeObject<Body>[] {
    const objects: KubeObject<Body>[] = []
    for (const key of keys) {
      const object = this.#objects.read(key)
      if (object) objects.push(object)
    }
    return objects
  }

  #tell(run: (handler: ChangeHandler<Body>) => void): void {
    for (const handler of this.#handlers) this.#guard(() => run(handler))
  }

  #guard(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.#log.error({ err: coerceError(error) }, 'change handler threw, the others go on')
    }
  }
}

/** An update whose `old` is read when somebody looks at it. */
class Update<Body> {
  readonly type = 'updated'
  readonly object: KubeObject<Body>
  readonly #old: () => KubeObject<Body>

  constructor(object: KubeObject<Body>, old: () => KubeObject<Body>) {
    this.object = object
    this.#old = old
  }

  get old(): KubeObject<Body> {
    return this.#old()
  }
}

function tellAdded<Body>(handler: ChangeHandler<Body>, object: KubeObject<Body>, isInitial: boolean): void {
  if (handler.changed) handler.changed({ type: 'added', object, isInitial })
  else handler.added?.(object, isInitial)
}

function tellDeleted<Body>(handler: ChangeHandler<Body>, object: KubeObject<Body>): void {
  if (handler.changed) handler.changed({ type: 'deleted', object })
  else handler.deleted?.(object)
}

const versionField = '"resourceVersion":"'

/** The default transform: managedFields are often half of an object, and only servers read them. */
export function dropManagedFields<Body>(object: KubeObject<Body>): KubeObject<Body> {
  if (object.metadata.managedFields === undefined) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

/** Whether the server would send an object to an informer with these selectors. */
function selection<Body>({ namespace, labelSelector, fieldSelector }: InformerOptions<Body>): (object: KubeObject<Body>) => boolean {
  const labels = labelSelector ? parseLabelSelector(labelSelector) : undefined
  const fields = fieldSelector ? parseFieldSelector(fieldSelector) : undefined
  return object =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (!labels || matchesLabels(labels, object.metadata.labels)) &&
    (!fields || matchesFields(fields, field => readField(object, field)))
}

/** Whether an object is of the shard: asked of all that the server sends, since most servers pass the selector over. */
function shardOf(shardSelector: string | undefined): (object: KubeObject<unknown>) => boolean {
  if (shardSelector === undefined) return () => true
  const selector = parseShardSelector(shardSelector)
  const isIn = shardTest(selector)
  return ({ metadata }) => isIn((selector.field === 'uid' ? metadata.uid : metadata.namespace) ?? '')
}

function readField(object: unknown, path: string): string | undefined {
  let value = object
  for (const part of path.split('.')) value = (value as { [name: string]: unknown } | undefined | null)?.[part]
  return value === undefined || value === null ? undefined : String(value)
}
