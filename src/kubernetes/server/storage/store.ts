import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type KubeObject, StatusError } from '../../object/index.ts'
import { rowAt, toCommitBatch } from './columns.ts'
import { CorruptionReport } from './corruption-report.ts'
import { entryOf, type StoredEntry, stringifyAsciiJson } from './entry.ts'
import type { OpenReport, ReadyMessage, RowsBatch } from './protocol.ts'
import { nextRevision } from './revision.ts'
import { rowError } from './row-error.ts'
import { sqliteFull } from './sqlite-codes.ts'
import { ServerStartError } from './start-error.ts'
import { StorageThread } from './storage-thread.ts'
import { type HistoryLimits, type StoredEvent, Table } from './table.ts'
import { WriteQueue } from './write-queue.ts'

export type StoreOptions = {
  dataDir: string
  /** 0 to 63, part of every revision. Default 0. */
  partition?: number
  /** OFF relies on the operating system instead of fsync: for tests and benchmarks. Default FULL. */
  synchronous?: 'FULL' | 'OFF'
  history?: HistoryLimits
  /** Writes are rejected with 429 while more than this many bytes wait for the disk. Default 64 MiB. */
  maxQueuedBytes?: number
  nowMs?: () => number
  log?: (message: string) => void
}

export type StoreStats = {
  objects: number
  bytes: number
  writes: number
  commits: number
  failedWrites: number
  queued: number
  queuedBytes: number
  lastCommitMs: number
}

/** Called with the events of a commit before its writers get their responses. Must not throw. */
export type CommitListener = (table: Table, events: readonly StoredEvent[]) => void

const defaultHistory: HistoryLimits = { events: 8_192, bytes: 16 * 1024 * 1024 }
/** History younger than this is kept, within the limits; so are the newest events of a table. As kube-apiserver and etcd do. */
const minHistoryMs = 300_000
const minHistoryEvents = 100
const compactHistoryEveryMs = 60_000
const defaultMaxQueuedBytes = 64 * 1024 * 1024

/**
 * All objects in memory; every write is on disk before anyone can see it (invariant 5).
 *
 * A write is computed from {@link head}, the newest version of its key, durable or not. So writes to one key form a queue, and writes
 * to different keys share one fsync: while the storage thread commits one batch, the next one collects.
 * Readers and watchers see tables, which change only when a commit is done.
 */
export class Store {
  readonly #thread: StorageThread
  readonly #tables = new Map<string, Table>()
  readonly #writes: WriteQueue
  readonly #commitListeners: CommitListener[] = []
  readonly #partition: number
  readonly #history: HistoryLimits
  readonly #nowMs: () => number
  readonly #log: (message: string) => void
  #isFlushScheduled = false
  #newestRevision = 0
  #durableRevision = 0
  #lastId = 0
  #failure: string | undefined
  #isClosing = false
  #closed: Promise<void> | undefined
  readonly #corruption = new CorruptionReport()
  #report: OpenReport | undefined
  #compaction: NodeJS.Timeout | undefined
  #stats = { writes: 0, commits: 0, failedWrites: 0, lastCommitMs: 0 }

  private constructor(file: string, options: StoreOptions) {
    this.#partition = options.partition ?? 0
    this.#history = options.history ?? defaultHistory
    this.#writes = new WriteQueue(options.maxQueuedBytes ?? defaultMaxQueuedBytes)
    this.#nowMs = options.nowMs ?? Date.now
    this.#log = options.log ?? (() => {})
    this.#thread = new StorageThread(
      { file, synchronous: options.synchronous ?? 'FULL' },
      {
        onRows: batch => this.#load(batch),
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
    store.#finishLoading(await store.#thread.ready)
    if (!store.#corruption.isEmpty) {
      await store.#thread.terminate()
      throw store.#corruption.toError(file, store.stats().objects)
    }
    store.#compaction = setInterval(() => store.#compactHistory(), compactHistoryEveryMs).unref()
    return store
  }

  /** The newest durable revision: the one that lists and bookmarks carry. */
  get revision(): number {
    return this.#durableRevision
  }

  /** The newest revision assigned to a write, durable or not: every later write gets a higher one. */
  get newestRevision(): number {
    return this.#newestRevision
  }

  /** Why nothing can be written any more, if so. Only opening the store again helps. */
  get failure(): string | undefined {
    return this.#failure
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
      table = new Table(name, this.#history)
      table.setFloor(this.#durableRevision)
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

  /** Deletes `before`, the {@link head} of its key. `object` is its last state, which watchers see. */
  remove(table: Table, before: StoredEntry, object: KubeObject): Promise<StoredEntry> {
    return this.#enqueue(table, before, undefined, this.#entry(table, before, object))
  }

  stats(): StoreStats {
    let objects = 0
    let bytes = 0
    for (const table of this.#tables.values()) {
      objects += table.size
      bytes += table.bytes
    }
    return { objects, bytes, ...this.#stats, queued: this.#writes.size, queuedBytes: this.#writes.bytes }
  }

  /**
   * Copies the database to `path`, a new file, while writes continue. The copy holds at least every write acknowledged before the call.
   * @throws {StatusError} TooManyRequests while another backup is in progress; an Error when the copy cannot be written.
   */
  async backUp(path: string): Promise<void> {
    if (this.#failure) throw restartError(this.#failure)
    await this.#thread.backUp(path)
  }

  /** Finishes queued writes and a backup in progress, then closes the file. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    clearInterval(this.#compaction)
    while (!this.#failure && this.#writes.size > 0) await this.#writes.last?.durable.catch(() => undefined)
    if (this.#failure) {
      await this.#thread.terminate()
      return
    }
    this.#isClosing = true
    await this.#thread.close()
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
    return entryOf(before?.id ?? ++this.#lastId, object, revision, stringifyAsciiJson(object), table.readFields)
  }

  #enqueue(table: Table, before: StoredEntry | undefined, after: StoredEntry | undefined, last: StoredEntry): Promise<StoredEntry> {
    if (this.#failure) return Promise.reject(restartError(this.#failure))
    if (this.#isClosing) {
      return Promise.reject(new StatusError('ServiceUnavailable', 'the server is shutting down: nothing was written'))
    }
    const durable = this.#writes.add(table, before, after, last)
    this.#scheduleFlush()
    return durable
  }

  // Waits for the end of this event-loop iteration: all writes that arrived together share a commit.
  #scheduleFlush(): void {
    if (this.#isFlushScheduled || this.#writes.isCommitting || !this.#writes.hasQueued) return
    this.#isFlushScheduled = true
    setImmediate(() => {
      this.#isFlushScheduled = false
      this.#flush()
    })
  }

  #flush(): void {
    if (this.#writes.isCommitting || !this.#writes.hasQueued || this.#failure) return
    this.#thread.commit(toCommitBatch(this.#writes.startBatch()))
  }

  #load(batch: RowsBatch): void {
    for (let i = 0; i < batch.texts.length; i++) {
      const row = rowAt(batch, i)
      const [id, resource, key, revision, text] = row
      if (id > this.#lastId) this.#lastId = id
      if (revision > this.#newestRevision) this.#newestRevision = revision
      try {
        const object = JSON.parse(text) as KubeObject
        const table = this.table(resource)
        const error = rowError(row, object) ?? (table.get(key) && `${resource} ${key} is stored twice`)
        if (error) this.#corruption.add({ what: error, rows: 1 })
        else table.load(id, object, revision, text)
      } catch (error) {
        this.#corruption.add({ what: `${resource} ${key} (row ${id}) cannot be read (${(error as Error).message})`, rows: 1 })
      }
    }
  }

  #finishLoading({ floor, revisions, report }: ReadyMessage): void {
    this.#newestRevision = Math.max(this.#newestRevision, floor)
    for (const [resource, revision] of revisions) {
      this.table(resource).setFloor(Math.max(revision, floor))
      this.#newestRevision = Math.max(this.#newestRevision, revision)
    }
    this.#report = report
    for (const corruption of report.corruptions) this.#corruption.add(corruption)
    this.#durableRevision = this.#newestRevision
  }

  #committed(durationMs: number): void {
    this.#stats.lastCommitMs = durationMs
    const batch = this.#writes.endBatch()
    // The next commit starts before the responses of this one are written, so the disk never waits for them.
    this.#flush()
    const events = new Map<Table, StoredEvent[]>()
    for (const write of batch) {
      const { table, before, after, last } = write
      const event = table.apply(before, after, last)
      const ofTable = events.get(table)
      if (ofTable) ofTable.push(event)
      else events.set(table, [event])
      this.#writes.complete(write)
    }
    this.#durableRevision = batch.at(-1)!.last.revision
    this.#stats.commits++
    this.#stats.writes += batch.length
    for (const [table, ofTable] of events) {
      for (const listener of this.#commitListeners) this.#notify(() => listener(table, ofTable))
      for (const listener of table.listeners) this.#notify(() => listener(ofTable))
    }
    for (const write of batch) write.resolve(write.last)
    this.#scheduleFlush()
  }

  // The commit is durable: a listener that throws must not delay the writers.
  #notify(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.#log(`a commit listener failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
  }

  #commitFailed(errcode: number, message: string): void {
    this.#log(`storage: commit failed: ${message}`)
    this.#stats.failedWrites += this.#writes.failBatch(() => commitError(errcode, message))
    this.#scheduleFlush()
  }

  #fail(reason: string): void {
    if (this.#failure) return
    this.#failure = reason
    this.#log(`storage: ${reason}`)
    this.#writes.failAll(() => restartError(reason))
  }
}

/** A server that starts empty in place of one that had objects would look like one that lost them. */
function checkNotMissing(dataDir: string, file: string): void {
  if (existsSync(file) && statSync(file).size > 0) return
  const evidence = [`${file}-wal`, join(dataDir, 'kubeconfig')].find(existsSync)
  if (evidence === undefined) return
  throw new ServerStartError(
    'DataMissing',
    `${file} is ${existsSync(file) ? 'empty' : 'missing'}, but ${evidence} shows that a server has run here: put the file back, ` +
      `restore a backup (oarlock restore BACKUP --data ${dataDir}), or remove ${evidence} to start empty`,
  )
}

function restartError(reason: string): StatusError {
  return new StatusError('InternalError', `${reason}: restart the server`)
}

function commitError(errcode: number, message: string): StatusError {
  const isFull = (errcode & 0xff) === sqliteFull || /no space left|disk is full/i.test(message)
  if (!isFull) return new StatusError('InternalError', `the write could not be stored (${message}): read the object before you retry`)
  const text = 'the disk of the data directory is full: nothing was written; free some space and retry'
  return new StatusError('InsufficientStorage', text, { code: 507 })
}
