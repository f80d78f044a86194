import { join } from 'node:path'
import type { KubeObject } from '../../object/index.ts'
import { nextRevision, readRevision } from '../../util/index.ts'
import { checkNotMissing } from './check-not-missing.ts'
import { ClusterClock, clockName } from './cluster-clock.ts'
import { toCommitBatch } from './columns.ts'
import { type Commit, DeferredWrites, type Reservation, type UnsavedEntry } from './deferred-writes.ts'
import { encryptionConfigPath } from './encryption-config.ts'
import { entryOf, type StoredEntry, stringifyAsciiJson } from './entry.ts'
import type { KeyRotation, OpenReport, ReadyMessage } from './protocol.ts'
import { StorageThread } from './storage-thread.ts'
import type { StoreOptions, StoreStats } from './store-options.ts'
import { type HistoryLimits, type StoredEvent, Table } from './table.ts'
import { TableLoader } from './table-loader.ts'
import { commitError, restartError, shuttingDownError } from './write-errors.ts'
import { type Write, WriteQueue } from './write-queue.ts'

/** Called with the events of a commit before its writers get their responses. Must not throw. */
export type CommitListener = (table: Table, events: readonly StoredEvent[]) => void

const defaultHistory: HistoryLimits = { events: 8_192, bytes: 16 * 1024 * 1024 }
/** History younger than this is kept, within the limits; so are the newest events of a table. As kube-apiserver and etcd do. */
const minHistoryMs = 300_000
const minHistoryEvents = 100
const compactHistoryEveryMs = 60_000
const defaultMaxQueuedBytes = 64 * 1024 * 1024
const defaultMaxDeferredMs = 10_000
const aheadFactor = 20
/** Of one commit: other writes wait for it. */
const maxSavedPerCommit = 250

/**
 * All objects in memory; every write is on disk before anyone can see it (invariant 5), except those of {@link putDeferred}.
 *
 * A write is computed from {@link head}, the newest version of its key, durable or not. So writes to one key form a queue, and writes
 * to different keys share one fsync: while the storage thread commits one batch, the next one collects.
 * Readers and watchers see tables, which change only when a commit is done.
 */
export class Store {
  readonly #thread: StorageThread
  readonly #loader = new TableLoader(name => this.table(name))
  readonly #tables = new Map<string, Table>()
  readonly #writes: WriteQueue
  readonly #commitListeners: CommitListener[] = []
  readonly #partition: number
  readonly #history: HistoryLimits
  readonly #nowMs: () => number
  readonly #log: (message: string) => void
  readonly #deferred: DeferredWrites
  /** Tables whose newest changes before this start may be lost. */
  readonly #interrupted = new Set<Table>()
  readonly #clock = new ClusterClock()
  #commit: Commit | undefined
  #saving: NodeJS.Timeout | undefined
  #isFlushScheduled = false
  #newestRevision = 0
  #visibleRevision = 0
  #lastId = 0
  #failure: string | undefined
  /**
   * The database has every change after this revision: an earlier one may be of another database, such as one before a restore, or a directory that was replaced.
   * Undefined of a database that was created just now.
   */
  #coveredFrom: number | undefined
  #isClosing = false
  #closed: Promise<void> | undefined
  #report: OpenReport | undefined
  #compaction: NodeJS.Timeout | undefined
  #stats = { writes: 0, commits: 0, failedWrites: 0, lastCommitMs: 0 }

  private constructor(file: string, options: StoreOptions) {
    this.#partition = options.partition ?? 0
    this.#history = options.history ?? defaultHistory
    this.#writes = new WriteQueue(options.maxQueuedBytes ?? defaultMaxQueuedBytes)
    this.#deferred = new DeferredWrites(options.maxDeferredMs ?? defaultMaxDeferredMs)
    this.#nowMs = options.nowMs ?? Date.now
    this.#log = options.log ?? (() => {})
    this.#thread = new StorageThread(
      { file, encryptionConfig: encryptionConfigPath(options.dataDir), synchronous: options.synchronous ?? 'FULL' },
      {
        onRows: batch => this.#loader.load(batch),
        onCommitted: durationMs => this.#committed(durationMs),
        onCommitFailed: (errcode, message) => this.#commitFailed(errcode, message),
        onFailure: reason => this.#fail(reason),
      },
    )
  }

  /**
   * Opens the database of a data directory, checks it and reads every object.
   * @throws {ServerStartError} when another process has it open, or it is newer, corrupt, missing or not writable.
   */
  static async open(options: StoreOptions): Promise<Store> {
    const { partition = 0, dataDir } = options
    if (!Number.isInteger(partition) || partition < 0 || partition > 63) throw new RangeError(`partition must be 0 to 63, got ${partition}`)
    const file = join(dataDir, 'oarlock.db')
    checkNotMissing(dataDir, file)
    const store = new Store(file, options)
    const ready = await store.#thread.ready
    const corruption = store.#loader.finish(ready)
    if (!corruption.isEmpty) {
      await store.#thread.terminate()
      throw corruption.toError(file, store.stats().objects)
    }
    store.#finishLoading(ready)
    store.#compaction = setInterval(() => store.#compactHistory(), compactHistoryEveryMs).unref()
    return store
  }

  /** The newest visible revision, durable or of a deferred write: the one that lists and bookmarks carry. */
  get revision(): number {
    return this.#visibleRevision
  }

  /** The newest revision assigned to a write, durable or not: every later write gets a higher one. */
  get newestRevision(): number {
    return this.#newestRevision
  }

  /** The revision that a write would get now, which is before anything else happens. */
  get upcomingRevision(): number {
    return nextRevision(this.#newestRevision, this.#nowMs(), this.#partition)
  }

  /**
   * Raises the clock to a revision that another server has assigned: later writes get higher ones, and {@link revision} is at least `seen` once it
   * has resolved, so that what a list or watch shows at `seen` is complete. Undefined if that is so already.
   * @throws {StatusError} BadRequest if `seen` is more than 60 s ahead of this server's clock.
   */
  raise(seen: number): Promise<void> | undefined {
    if (seen <= this.#visibleRevision) return undefined
    if (this.#failure) throw restartError(this.#failure)
    const reserved = this.#clock.reserve(seen, this.#nowMs())
    this.#newestRevision = Math.max(this.#newestRevision, seen)
    const pending = this.#writes.last?.durable.catch(() => undefined)
    if (!reserved && !pending) {
      this.#visibleRevision = seen
      this.#scheduleFlush()
      return undefined
    }
    this.#scheduleFlush()
    return Promise.all([reserved, pending]).then(() => {
      this.#visibleRevision = Math.max(this.#visibleRevision, seen)
    })
  }

  /** Why nothing can be written any more, if so. Only opening the store again helps. */
  get failure(): string | undefined {
    return this.#failure
  }

  /** True when the last process was killed, or a backup restored: the newest {@link putDeferred} writes of `table` may be lost. */
  wasInterrupted(table: Table): boolean {
    return this.#interrupted.has(table)
  }

  /** What the check at startup found. */
  get report(): OpenReport | undefined {
    return this.#report
  }

  get nowMs(): number {
    return this.#nowMs()
  }

  /** The table of a resource, such as `stacks.oarlock.dev`; created on first use. */
  table(name: string): Table {
    let table = this.#tables.get(name)
    if (!table) {
      // A database has no row of a resource only if no change of it was ever stored.
      table = new Table(name, this.#history, this.#coveredFrom ?? this.#visibleRevision)
      this.#tables.set(name, table)
      this.#writes.addTable(table)
    }
    return table
  }

  tables(): IterableIterator<Table> {
    return this.#tables.values()
  }

  onCommit(listener: CommitListener): void {
    this.#commitListeners.push(listener)
  }

  /** The newest version of an object, durable or not: the one that a write must be computed from. */
  head(table: Table, key: string): StoredEntry | undefined {
    const write = this.#writes.newest(table).get(key)
    return write ? write.after : table.get(key)
  }

  /** The newest pending write of each key of a table; `after` is undefined for a deletion. */
  *pending(table: Table): Generator<{ key: string; after: StoredEntry | undefined }> {
    yield* this.#writes.newest(table).values()
  }

  /** The newest version of every object: what {@link head} returns for each key. */
  *heads(table: Table): Generator<StoredEntry> {
    const writes = this.#writes.newest(table)
    for (const entry of table.values()) if (!writes.has(entry.key)) yield entry
    for (const { after } of writes.values()) if (after) yield after
  }

  /** Resolves when the newest write to a key is durable or has failed; undefined when none is pending. */
  settled(table: Table, key: string): Promise<unknown> | undefined {
    return this.#writes
      .newest(table)
      .get(key)
      ?.durable.catch(() => undefined)
  }

  /**
   * Writes `object` over `before`, which must be the {@link head} of its key (undefined: there is none). Sets the resource version of
   * `object`, which belongs to the store from then on. Resolves when the write is durable.
   * @throws {StatusError} InsufficientStorage when the disk is full; nothing has changed then.
   */
  put(table: Table, before: StoredEntry | undefined, object: KubeObject): Promise<StoredEntry> {
    const after = this.#entry(table, before, object)
    const durable = this.#enqueue(table, before, after, after)
    if (!before) table.onCreate?.(after)
    return durable
  }

  /**
   * As {@link put}, but resolves when the write is visible: a crash may undo it, see {@link DeferredWrites}. Events stay in the order of
   * their revisions, so it waits for durable writes that were queued before it.
   */
  putDeferred(table: Table, before: StoredEntry, object: KubeObject): Promise<StoredEntry> {
    const after = this.#entry(table, before, object)
    this.#saving ??= setInterval(() => this.#flush(), this.#deferred.intervalMs).unref()
    return this.#enqueue(table, before, after, after, true)
  }

  /** Deletes `before`, the {@link head} of its key. `object` is its last state, which watchers see. */
  remove(table: Table, before: StoredEntry, object: KubeObject): Promise<StoredEntry> {
    return this.#enqueue(table, before, undefined, this.#entry(table, before, object))
  }

  stats(): StoreStats {
    let objects = 0
    let bytes = 0
    let historyBytes = 0
    for (const table of this.#tables.values()) {
      objects += table.size
      bytes += table.bytes
      historyBytes += table.historyBytes
    }
    return {
      objects,
      bytes,
      historyBytes,
      ...this.#stats,
      queued: this.#writes.size,
      queuedBytes: this.#writes.bytes,
      deferredWrites: this.#deferred.size,
    }
  }

  /**
   * Copies the database to `path`, a new file, while writes continue. The copy holds at least every write acknowledged before the call,
   * except deferred ones.
   * @throws {StatusError} TooManyRequests while a backup or key rotation is in progress; an Error when the copy cannot be written.
   */
  async backUp(path: string): Promise<void> {
    if (this.#failure) throw restartError(this.#failure)
    await this.#thread.backUp(path)
  }

  /** Re-encrypts everything with a new key; at the end, writes wait until the file is rewritten. Throws as {@link backUp}; the next start completes it then. */
  async rotateEncryptionKey({ removesOldKeys }: { removesOldKeys: boolean }): Promise<KeyRotation> {
    if (this.#failure) throw restartError(this.#failure)
    return await this.#thread.rotateKey(removesOldKeys)
  }

  /** Finishes queued writes and a backup, interrupts a key rotation, then closes the file. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    clearInterval(this.#compaction)
    clearInterval(this.#saving)
    while (!this.#failure && (this.#commit || this.#writes.size > 0)) {
      await (this.#commit?.ended.promise ?? this.#writes.last?.durable.catch(() => undefined))
    }
    this.#isClosing = true
    const reservations = this.#deferred.release()
    if (!this.#failure && reservations.length > 0) await this.#startCommit(this.#deferred.takeAll(), reservations)
    await (this.#failure ? this.#thread.terminate() : this.#thread.close())
  }

  #compactHistory(): void {
    // A revision carries the time it was assigned at.
    const revision = nextRevision(0, this.#nowMs() - minHistoryMs, this.#partition)
    for (const table of this.#tables.values()) table.compactHistory(revision, minHistoryEvents)
  }

  #entry(table: Table, before: StoredEntry | undefined, object: KubeObject): StoredEntry {
    const revision = nextRevision(this.#newestRevision, this.#nowMs(), this.#partition)
    this.#newestRevision = revision
    object.metadata.resourceVersion = String(revision)
    return entryOf(before?.id ?? ++this.#lastId, object, revision, stringifyAsciiJson(object), table.readFields, before)
  }

  #enqueue(
    table: Table,
    before: StoredEntry | undefined,
    after: StoredEntry | undefined,
    last: StoredEntry,
    isDeferred = false,
  ): Promise<StoredEntry> {
    if (this.#failure) return Promise.reject(restartError(this.#failure))
    if (this.#isClosing) return Promise.reject(shuttingDownError())
    const durable = this.#writes.add(table, before, after, last, isDeferred)
    this.#scheduleFlush()
    return durable
  }

  // Waits for the end of this event-loop iteration: all writes that arrived together share a commit.
  #scheduleFlush(): void {
    if (this.#isFlushScheduled || this.#commit || !(this.#writes.hasQueued || this.#clock.isDue)) return
    this.#isFlushScheduled = true
    setImmediate(() => {
      this.#isFlushScheduled = false
      this.#flush()
    })
  }

  #flush(): void {
    if (this.#commit || this.#failure || this.#isClosing || this.#flushToDisk() || !this.#writes.hasQueued) return
    this.#writes.startBatch()
    const batch = this.#writes.endBatch()
    this.#deferred.complete(batch, performance.now())
    this.#apply(batch)
    this.#scheduleFlush()
  }

  /** Starts a commit; false when nothing needs the disk now. */
  #flushToDisk(): boolean {
    const { queued } = this.#writes
    const nowMs = performance.now()
    if (!this.#clock.isDue && !this.#deferred.hasDue(nowMs) && !queued.some(write => !this.#deferred.mayApply(write))) return false
    // Revisions that are ahead of the clock advance with writes, not with time: a small reserve is enough, and frequent crashes do not add up.
    const revisionAfterMs = (ms: number) =>
      nextRevision(0, Math.max(this.#nowMs() + ms, readRevision(this.#newestRevision).atMs + ms / aheadFactor), this.#partition)
    const reservations = [...this.#deferred.newReservations(queued, revisionAfterMs), ...this.#clock.takeReservations()]
    void this.#startCommit(this.#deferred.takeDue(nowMs, maxSavedPerCommit), reservations)
    return true
  }

  /** Resolves when the commit has ended, durable or not. */
  #startCommit(saved: readonly UnsavedEntry[], reservations: readonly Reservation[]): Promise<void> {
    const ended = Promise.withResolvers<void>()
    this.#commit = { saved, reservations, ended }
    this.#thread.commit(toCommitBatch(this.#writes.startBatch(), saved, reservations))
    return ended.promise
  }

  #finishLoading({ reservations, report, floor, revisions }: ReadyMessage): void {
    if (revisions.length > 0) this.#coveredFrom = Math.max(floor, Math.min(...revisions.map(([, revision]) => revision)))
    for (const [resource, revision] of reservations) {
      if (resource === clockName) {
        this.#clock.restore(revision)
        continue
      }
      const table = this.table(resource)
      this.#interrupted.add(table)
      this.#deferred.reserve([[table, revision]])
    }
    this.#lastId = this.#loader.lastId
    this.#newestRevision = this.#loader.newestRevision
    this.#visibleRevision = this.#newestRevision
    this.#report = report
  }

  #committed(durationMs: number): void {
    const { reservations, ended } = this.#commit!
    this.#commit = undefined
    this.#stats.lastCommitMs = durationMs
    this.#stats.commits++
    this.#deferred.reserve(reservations.filter(([{ name }]) => name !== clockName))
    this.#clock.committed(reservations)
    const batch = this.#writes.endBatch()
    // First: a version that was deferred before must not be written over a later one.
    this.#deferred.complete(batch, performance.now())
    // The next commit starts before the responses of this one are written, so the disk never waits for them.
    if (!this.#isClosing) this.#flushToDisk()
    this.#apply(batch)
    ended.resolve()
    this.#scheduleFlush()
  }

  /** Makes a batch visible: its writes are durable or deferred. */
  #apply(batch: readonly Write[]): void {
    if (batch.length === 0) return
    const events = new Map<Table, StoredEvent[]>()
    for (const write of batch) {
      const { table, before, after, last } = write
      const event = table.apply(before, after, last)
      const ofTable = events.get(table)
      if (ofTable) ofTable.push(event)
      else events.set(table, [event])
      this.#writes.complete(write)
    }
    this.#visibleRevision = Math.max(this.#visibleRevision, batch.at(-1)!.last.revision)
    this.#stats.writes += batch.length
    for (const [table, ofTable] of events) {
      for (const listener of this.#commitListeners) this.#notify(() => listener(table, ofTable))
      for (const listener of table.listeners) this.#notify(() => listener(ofTable))
    }
    for (const write of batch) write.resolve(write.last)
  }

  // The writes are done: a listener that throws must not delay the writers.
  #notify(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.#log(`a commit listener failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
  }

  #commitFailed(errcode: number, message: string): void {
    this.#log(`storage: commit failed: ${message}`)
    const { saved, ended } = this.#commit!
    this.#commit = undefined
    this.#deferred.giveBack(saved)
    this.#stats.failedWrites += this.#writes.failBatch(() => commitError(errcode, message))
    this.#clock.failed(commitError(errcode, message))
    ended.resolve()
    this.#scheduleFlush()
  }

  #fail(reason: string): void {
    if (this.#failure) return
    this.#failure = reason
    this.#log(`storage: ${reason}`)
    this.#writes.failAll(() => restartError(reason))
    this.#clock.failed(restartError(reason))
    this.#commit?.ended.resolve()
  }
}
