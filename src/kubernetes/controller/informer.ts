/** Above 400 lines: filling, events, own writes and reads of one cache share its private state. */
import { type Client, compareResourceVersions, isMetadataOnly, type ListWatchOptions, listWatch, systemClock } from '../client/index.ts'
import { isReason, type KubeObject, objectKey, type Resource, type WatchEvent } from '../object/index.ts'
import { coerceError, type Log, silentLog } from '../util/log.ts'
import { type ChangeHandler, ChangeHandlers } from './change-handlers.ts'
import type { ChangingSelector } from './changing-selector.ts'
import { deepFreeze } from './deep-freeze.ts'
import type { Feed, InformerSource } from './informer-source.ts'
import { ObjectIndex } from './object-index.ts'
import { ObjectStore } from './object-store.ts'
import { PendingWrites } from './pending-writes.ts'
import { causeOf, RepeatedWarnings } from './repeated-warnings.ts'
import { type Selection, selectionTest, shardMemberTest } from './selection.ts'
import { Tombstones } from './tombstones.ts'

export type InformerOptions<Body> = Selection & {
  /** One of the manager's clusters; default: the manager's own client. */
  cluster?: string | undefined
  /** Index functions by name, for {@link Informer.byIndex}. */
  indexes?: Record<string, (object: KubeObject<Body>) => readonly string[]> | undefined
  /**
   * Returns what to keep of an object, which it may modify; default: everything but `metadata.managedFields`. It must keep apiVersion,
   * kind, name, namespace, uid and resourceVersion. If it throws, the object is kept unchanged.
   */
  transform?: ((object: KubeObject<Body>) => KubeObject<Body>) | undefined
  /**
   * How many objects are kept parsed; default 20,000. The others are packed to a fraction of their size, and each read unpacks one
   * (a few microseconds); a `list()` of everything unpacks all of them. Infinity keeps all parsed.
   */
  hotObjects?: number | undefined
  /**
   * Only in a manager with `shards`: the cache has only the objects of the buckets that this process has, or is about to get. `root`: by the hash
   * of their own UID. `owned`: by the label with the bucket of their root, which they carry since they were created.
   */
  sharded?: 'root' | 'owned' | undefined
  /** In place of `labelSelector`: one that may change. Those who ask for it with the same selector share one cache. Default: it does not change. */
  selector?: ChangingSelector | undefined
}

/** Dependencies of an informer, which the manager provides, and its options. */
export type InformerParts<Body> = InformerOptions<Body> & {
  client: Client
  resource: Resource<Body>
  log?: Log | undefined
  source?: InformerSource | undefined
  /** Settings of list+watch, for tests and slow networks. */
  listWatch?:
    | Partial<
        Pick<ListWatchOptions<Body>, 'backoff' | 'watchTimeoutMs' | 'idleTimeoutMs' | 'pageSize' | 'streamLists' | 'clock' | 'random'>
      >
    | undefined
}

/**
 * A cache of one kind, kept in sync with the server by list+watch. The objects that it returns and passes to handlers, predicates and
 * indexes are shared by all readers and frozen: copy one (`structuredClone`) before changing it.
 */
export class Informer<Body = { [field: string]: unknown }> {
  readonly resource: Resource<Body>
  /** The manager's cluster that it follows; undefined for the manager's own client. */
  readonly cluster: string | undefined
  readonly #client: Client
  readonly #options: InformerParts<Body>
  readonly #log: Log
  readonly #selects: (object: KubeObject<unknown>) => boolean
  readonly #isInShard: (object: KubeObject<unknown>) => boolean
  readonly #objects: ObjectStore<Body>
  readonly #indexes = new Map<string, ObjectIndex<KubeObject<Body>>>()
  /** Created by the first list of one namespace: an index costs about 50 bytes per object. */
  #byNamespace: ObjectIndex<KubeObject<Body>> | undefined
  readonly #handlers: ChangeHandlers<Body>
  readonly #pendingWrites = new PendingWrites()
  readonly #tombstones = new Tombstones()
  readonly #synced = Promise.withResolvers<void>()
  /** Every event up to this version has been received. Invariant: never lower than the version of any object that came from the watch. */
  #resourceVersion = ''
  #hasSynced = false
  #lastError: Error | undefined
  /** When the first of the failures began that {@link lastError} is the last of. */
  #failingSinceMs: number | undefined
  readonly #warnings = new RepeatedWarnings(() => this.#nowMs())

  constructor(parts: InformerParts<Body>) {
    const { client, resource, log = silentLog, indexes = {} } = parts
    this.resource = resource
    this.cluster = parts.cluster
    this.#client = client
    this.#objects = new ObjectStore(parts.hotObjects ?? 20_000)
    this.#options = parts
    this.#log = log.child({ informer: resource.plural })
    this.#handlers = new ChangeHandlers(this.#log)
    this.#selects = selectionTest(parts)
    const { source } = parts
    this.#isInShard = source ? object => source.includes(object) : shardMemberTest(parts)
    for (const [name, valuesOf] of Object.entries(indexes)) this.addIndex(name, valuesOf)
  }

  /** True once the cache has been filled for the first time. */
  get hasSynced(): boolean {
    return this.#hasSynced
  }

  /** Whether the cache has all that it should have now: a sharded one is filled again for the buckets that its process gets. */
  get isFilled(): boolean {
    return this.#hasSynced && (this.#options.source?.isFilled ?? true)
  }

  /** Why the cache cannot currently be kept in sync, such as a missing CRD; undefined while it is in sync. */
  get lastError(): Error | undefined {
    return this.#lastError
  }

  /** For how long list+watch has failed, from the first failed attempt on; 0 while the cache is in sync. Until it succeeds, changes are not seen. */
  get failingMs(): number {
    return this.#failingSinceMs === undefined ? 0 : this.#nowMs() - this.#failingSinceMs
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

  /** Keeps the cache in sync until `signal` aborts. Called by the manager. */
  async start(signal: AbortSignal): Promise<void> {
    const { labelSelector, shardSelector, source } = this.#options
    if (source) {
      await source.run({ follow: feed => this.#follow(feed), forget: keys => this.#forget(keys), synced: () => this.#setSynced() }, signal)
      return
    }
    await this.#follow({
      labelSelector,
      shardSelector,
      signal,
      includes: this.#isInShard,
      keys: () => undefined,
      onVersion: resourceVersion => {
        this.#resourceVersion = resourceVersion
      },
    })
  }

  async #follow(feed: Feed): Promise<void> {
    const { namespace, fieldSelector } = this.#options
    const part: Part = {
      feed,
      resourceVersion: feed.resourceVersion ?? '',
      hasListed: feed.resourceVersion !== undefined,
      isResumed: feed.resourceVersion !== undefined,
      filling: undefined,
    }
    await listWatch(this.#client, this.resource, {
      namespace,
      labelSelector: feed.labelSelector,
      fieldSelector,
      shardSelector: feed.shardSelector,
      resourceVersion: feed.resourceVersion,
      ...this.#options.listWatch,
      // managedFields are only read if a transform may want them.
      managedFields: this.#options.transform !== undefined,
      signal: feed.signal,
      chunks: { begin: () => this.#beginFilling(part), add: items => this.#addChunk(part, items) },
      onReplace: (items, resourceVersion) => this.#replace(part, items, resourceVersion),
      onEvent: event => this.#event(part, event),
      skipLine: line => this.#skip(part, line),
      // A kind that does not change has no event that would show it.
      onWatching: () => this.#succeeded(),
      onError: (thrown, retryInMs, verb) => this.#failed(thrown, retryInMs, verb),
    })
  }

  #failed(thrown: unknown, retryInMs: number, verb: 'list' | 'watch'): void {
    this.#failingSinceMs ??= this.#nowMs()
    const error = coerceError(thrown)
    this.#lastError = isReason(error, 'NotFound') ? this.#missing(error) : error
    const repeated = this.#warnings.next(`${verb} ${causeOf(error)}`)
    const fields = { verb, err: this.#lastError, retryInMs: Math.round(retryInMs), ...(repeated && { repeated }) }
    this.#log[repeated === undefined ? 'debug' : 'warn'](fields, 'list+watch failed, retrying')
  }

  /** Listing a kind that exists never returns NotFound, so the kind itself is missing. */
  #missing(error: Error): Error {
    const { group, plural, version, apiVersion } = this.resource
    const wanted = group ? `is the CRD ${plural}.${group} applied, and does it serve ${version}?` : `does the server serve ${apiVersion}?`
    return new Error(`the server has no ${plural} of ${apiVersion}: ${wanted} retrying until it does`, { cause: error })
  }

  /** Whether the namespace and the selectors include an object; buckets and shards do not count. */
  selects(object: KubeObject<unknown>): boolean {
    return this.#selects(object)
  }

  /** Whether the cache would have this object now if it exists and still matches the selectors: its bucket or shard is in it. */
  isInShard(object: KubeObject<unknown>): boolean {
    return this.#isInShard(object)
  }

  /** The UID of the object under `key`; parses nothing. */
  uidOf(key: string): string | undefined {
    return this.#objects.stored(key)?.uid
  }

  /** The object under `namespace/name`, or `name` for a cluster-scoped kind. */
  get(key: string): KubeObject<Body> | undefined {
    return this.#objects.read(key)
  }

  /** Whether the cache has an object under `key`; parses nothing. */
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

  /** The keys of what {@link byIndex} returns. Parses no object, so it is the cheap way to count, compare or test for existence. */
  indexKeys(indexName: string, value: string): string[] {
    return [...this.#indexed(indexName).keys(value)]
  }

  /** Declares an index at any time. An existing name keeps its first function, so that several callers may declare it. */
  addIndex(name: string, valuesOf: (object: KubeObject<Body>) => readonly string[]): void {
    if (this.#indexes.has(name)) return
    this.#indexes.set(name, this.#build(valuesOf))
  }

  /** Calls `handler` for every present object and every later change; returns a function that removes it. A handler that throws is logged and kept. */
  onChange(handler: ChangeHandler<Body>): () => void {
    const remove = this.#handlers.add(handler)
    for (const [, object] of this.#objects.objects()) {
      deepFreeze(object)
      this.#handlers.addedTo(handler, object, true)
    }
    return remove
  }

  /**
   * Puts the response to a write into the cache, so that the next reconcile reads its own write even if the watch lags. Does nothing
   * if the cache is already as new; returns whether it changed. `manager.client` and the client of a reconcile do this
   * automatically: call it for writes by other clients.
   */
  applyLocal(object: KubeObject<Body>): boolean {
    const key = objectKey(object)
    const version = object.metadata.resourceVersion
    const cached = this.#objects.stored(key)
    // Events up to here have been received: an object that the cache lacks at this version was deleted since.
    if (!this.#hasSynced || compareResourceVersions(version, this.#receivedVersion) <= 0) return false
    if (cached && compareResourceVersions(version, cached.resourceVersion) <= 0) return false
    if (this.#tombstones.isLate(object) || !this.#isInShard(object)) return false
    const { apiVersion, kind } = this.resource
    // A copy for the user's transform, because the response belongs to the caller.
    const copy = this.#options.transform ? structuredClone(object) : object
    const own = isMetadataOnly(this.resource)
      ? ({ apiVersion, kind, metadata: copy.metadata } as KubeObject<Body>)
      : { ...copy, apiVersion, kind }
    if (!this.#selects(object)) {
      // The write removed it from the selection, as the watch will report.
      if (cached?.uid !== object.metadata.uid) return false
      this.#drop(key, version, { last: own })
      return true
    }
    this.#pendingWrites.add(key, version)
    this.#put(key, this.#kept(own), false)
    return true
  }

  /** Like {@link applyLocal}, for the response to a delete that removed the object completely. */
  applyLocalDelete(key: string, uid: string): boolean {
    if (!this.#hasSynced || this.#objects.stored(key)?.uid !== uid) return false
    this.#drop(key, undefined)
    return true
  }

  get #receivedVersion(): string {
    return this.#options.source?.receivedVersion ?? this.#resourceVersion
  }

  /** Only the first list is processed in parts: no reader relies on the cache yet, and it is the peak of the process's memory. */
  #beginFilling(part: Part): boolean {
    if (part.hasListed) return false
    part.filling = new Set()
    return true
  }

  #addChunk(part: Part, items: KubeObject<Body>[]): void {
    for (const item of items) {
      if (!part.feed.includes(item)) continue
      const key = objectKey(item)
      part.filling?.add(key)
      this.#put(key, this.#kept(item), true)
    }
  }

  /** Objects that left the selection; unlike deleted ones they may return at the same version. */
  #forget(keys: Iterable<string>): void {
    for (const key of keys) this.#drop(key, undefined, { isGone: false })
  }

  #replace(part: Part, items: KubeObject<Body>[], resourceVersion: string): void {
    const isInitial = !part.hasListed
    const filled = part.filling
    part.filling = undefined
    if (compareResourceVersions(resourceVersion, part.resourceVersion) < 0) {
      this.#pendingWrites.forgetPending()
      this.#tombstones.clear()
    }
    const isAhead = (key: string) => this.#pendingWrites.isAhead(key, this.#objects.stored(key)?.resourceVersion, resourceVersion)
    const removed = new Set(part.feed.keys() ?? this.#objects.keys())
    for (const key of filled ?? []) removed.delete(key)
    for (const item of items) {
      if (!part.feed.includes(item) || this.#tombstones.isLate(item, part)) continue
      const key = objectKey(item)
      removed.delete(key)
      if (isAhead(key)) continue
      this.#pendingWrites.settle(key)
      this.#put(key, this.#kept(item), isInitial)
    }
    for (const key of removed) if (!isAhead(key)) this.#drop(key, resourceVersion, { part })
    this.#pendingWrites.forgetEchoes()
    part.resourceVersion = resourceVersion
    part.hasListed = true
    part.isResumed = false
    this.#succeeded()
    part.feed.onVersion(resourceVersion)
    if (!this.#options.source) this.#setSynced()
  }

  #setSynced(): void {
    if (this.#hasSynced) return
    this.#hasSynced = true
    this.#synced.resolve()
  }

  #event(part: Part, { type, object }: WatchEvent<KubeObject<Body>>): void {
    const { resourceVersion } = object.metadata
    if (type !== 'BOOKMARK') {
      const key = objectKey(object)
      const cached = this.#objects.stored(key)
      const age = cached ? compareResourceVersions(resourceVersion, cached.resourceVersion) : 1
      if (age >= 0) this.#pendingWrites.settle(key)
      // Equal versions for a deletion: with a selector, the write that removed an object from it is reported as DELETED at that write's version.
      if (type === 'DELETED') {
        // Not if that write passed it to another watch, which has delivered it already.
        if (cached && (age > 0 || (age === 0 && this.#holdsFor(part, key)))) this.#drop(key, resourceVersion, { part, last: object })
      } else if (age > 0 && !part.feed.includes(object)) {
        // It left this part and still matches the selector of the watch. Handlers see its last state in this cache.
        if (cached && this.#holdsFor(part, key)) this.#drop(key, resourceVersion, { part })
      } else if (age > 0 && !this.#isLate(part, object) && !(part.isResumed && part.feed.hasReceived?.(object))) {
        this.#put(key, this.#kept(object), false)
      }
    }
    this.#advance(part, resourceVersion)
  }

  /** Whether the cached object under `key` belongs to this part. */
  #holdsFor({ feed }: Part, key: string): boolean {
    const object = this.#objects.get(key)
    return object !== undefined && feed.includes(object)
  }

  /** What a watch repeats is late whichever part removed it. */
  #isLate(part: Part, object: KubeObject<Body>): boolean {
    const isRepeated = compareResourceVersions(object.metadata.resourceVersion, part.resourceVersion) <= 0
    return this.#tombstones.isLate(object, isRepeated ? undefined : part)
  }

  #skip(part: Part, line: string): string | undefined {
    const version = this.#pendingWrites.takeEcho(line, key => this.#objects.stored(key)?.uid)
    if (version !== undefined) this.#advance(part, version)
    return version
  }

  /** The watch is alive and has delivered everything up to this version. */
  #advance(part: Part, resourceVersion: string): void {
    if (compareResourceVersions(resourceVersion, part.resourceVersion) > 0) {
      part.resourceVersion = resourceVersion
      part.feed.onVersion(resourceVersion)
    }
    this.#succeeded()
  }

  #succeeded(): void {
    if (this.#failingSinceMs === undefined) return
    this.#log.info({ failedForMs: Math.round(this.failingMs) }, 'list+watch works again')
    this.#lastError = undefined
    this.#failingSinceMs = undefined
  }

  #nowMs(): number {
    return (this.#options.listWatch?.clock ?? systemClock).nowMs()
  }

  /** The object after the transform. A transform that throws or drops the identity must not block the whole watch. */
  #kept(object: KubeObject<Body>): KubeObject<Body> {
    const { transform } = this.#options
    if (!transform) return dropManagedFields(object)
    const { uid, resourceVersion } = object.metadata
    try {
      const kept = transform(object)
      if (kept?.metadata?.uid === uid && kept.metadata.resourceVersion === resourceVersion) return kept
      throw new TypeError('a transform must keep metadata.uid and metadata.resourceVersion')
    } catch (error) {
      this.#log.error({ err: coerceError(error), key: objectKey(object) }, 'transform failed, keeping the object unchanged')
      return dropManagedFields(object)
    }
  }

  #put(key: string, object: KubeObject<Body>, isInitial: boolean): void {
    const stored = this.#objects.stored(key)
    if (stored?.resourceVersion === object.metadata.resourceVersion && stored.uid === object.metadata.uid) return
    const isAnother = stored !== undefined && stored.uid !== object.metadata.uid
    const old = stored && this.#objects.snapshot(key)
    if (isAnother) this.#tombstones.add(stored.uid, undefined)
    this.#objects.set(key, object)
    if (this.#handlers.size === 0 && !this.#byNamespace && this.#indexes.size === 0) return
    deepFreeze(object)
    if (this.#byNamespace || this.#indexes.size > 0) this.#index(key, old?.(), object)
    // Deleted and recreated while disconnected: handlers must see both, or what belonged to the old object is never cleaned up.
    if (old && isAnother) {
      this.#handlers.deleted(old())
      this.#handlers.added(object, isInitial)
    } else if (old) {
      this.#handlers.updated(old, object)
    } else {
      this.#handlers.added(object, isInitial)
    }
  }

  /** `version` is the version of the removal if known; `last` is the state that the server deleted if the watch reported it; `part` removes it. */
  #drop(
    key: string,
    version: string | undefined,
    { last, part, isGone = true }: { last?: KubeObject<Body>; part?: Part; isGone?: boolean } = {},
  ): void {
    const stored = this.#objects.stored(key)
    if (!stored) return
    if (isGone) this.#tombstones.add(stored.uid, version, part)
    const old = this.#objects.snapshot(key)
    this.#pendingWrites.settle(key)
    this.#objects.delete(key)
    if (this.#byNamespace || this.#indexes.size > 0) this.#index(key, old(), undefined)
    if (this.#handlers.size === 0) return
    const final = last ? this.#kept(last) : old()
    deepFreeze(final)
    this.#handlers.deleted(final)
  }

  #index(key: string, old: KubeObject<Body> | undefined, next: KubeObject<Body> | undefined): void {
    this.#byNamespace?.replace(key, old, next)
    for (const [name, index] of this.#indexes) {
      try {
        index.replace(key, old, next)
      } catch (error) {
        this.#log.error({ err: coerceError(error), index: name, key }, 'index function threw, the object is missing from the index')
      }
    }
  }

  #indexed(indexName: string): ObjectIndex<KubeObject<Body>> {
    const index = this.#indexes.get(indexName)
    if (index) return index
    const known = [...this.#indexes.keys()].join(', ') || 'none'
    throw new RangeError(`informer of ${this.resource.plural} has no index ${JSON.stringify(indexName)}; known indexes: ${known}`)
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
}

/** A feed and how far it has come. */
type Part = {
  readonly feed: Feed
  resourceVersion: string
  hasListed: boolean
  /** It began at a version instead of a list, and has not listed since. */
  isResumed: boolean
  /** Keys received by the current attempt to list, if that is streamed in parts. */
  filling: Set<string> | undefined
}

/** The default transform: managedFields are often half of an object, and only servers read them. */
export function dropManagedFields<Body>(object: KubeObject<Body>): KubeObject<Body> {
  if (object.metadata.managedFields === undefined) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
