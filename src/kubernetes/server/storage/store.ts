import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { type KubeObject, StatusError } from '../../object/index.ts'
import { startThread } from '../../util/index.ts'
import { CorruptionReport } from './corruption-report.ts'
import { asciiJson, type Entry, entryOf } from './entry.ts'
import type { CommitBatch, FromStorageThread, OpenReport, Row, RowsBatch, StorageThreadOptions, ToStorageThread } from './protocol.ts'
import { nextRevision } from './revision.ts'
import { rowError } from './row-error.ts'
import { sqliteFull } from './sqlite-codes.ts'
import { ServerStartError } from './start-error.ts'
import { type HistoryLimits, type StoredEvent, Table } from './table.ts'

export type StoreOptions = {
  dataDir: string
  /** 0 to 63, part of every revision. Default 0. */
  partition?: number
  /** OFF trusts the operating system instead of the disk: for tests and benchmarks. Default FULL. */
  synchronous?: 'FULL' | 'OFF'
  history?: HistoryLimits
  /** Writes beyond so many bytes that wait for the disk are refused with 429. Default 64 MiB. */
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

/** Called with the events of a commit before the writers are answered. Must not throw. */
export type CommitListener = (table: Table, events: readonly StoredEvent[]) => void

type Write = {
  readonly table: Table
  readonly key: string
  readonly before: Entry | undefined
  readonly after: Entry | undefined
  /** What events show: `after`, or the last state of a deleted object. */
  readonly last: Entry
  /** The write that `before` comes from, until that is durable (and no longer: a busy key must not become a chain). */
  previous: Write | undefined
  readonly isNew: boolean
  failed: boolean
  readonly durable: Promise<Entry>
  resolve(entry: Entry): void
  reject(error: Error): void
}

const defaultHistory: HistoryLimits = { events: 8_192, bytes: 16 * 1024 * 1024 }
/** How long history is kept at least, as long as the limits allow, and how many events of a table are kept for longer: as kube-apiserver and etcd do. */
const historyMs = 300_000
const lastingEvents = 100
const forgetEveryMs = 60_000

const maxWritesPerCommit = 2_000
/** What one message to the storage thread may carry: both threads hold it, and a commit of this size takes some 0.1 s. */
const maxBytesPerCommit = 8 * 1024 * 1024
/** What may wait for the disk; more is refused until it has caught up (invariant 10). */
const defaultMaxQueuedBytes = 64 * 1024 * 1024

/**
 * All objects in memory, every write on disk before anyone learns of it (invariant 5).
 *
 * Writers compute from {@link head}, the newest version written, durable or not, so writes to one key queue up and
 * writes to different keys share one fsync: while a commit runs in the worker thread the next one collects.
 * Readers and watchers see tables, which change only when a commit is done.
 */
export class Store {
  readonly #worker: Worker
  readonly #loadedBatches: Int32Array<SharedArrayBuffer>
  readonly #tables = new Map<string, Table>()
  readonly #heads = new Map<Table, Map<string, Write>>()
  readonly #commitListeners: CommitListener[] = []
  readonly #partition: number
  readonly #history: HistoryLimits
  readonly #nowMs: () => number
  readonly #log: (message: string) => void
  #queue: Write[] = []
  #inFlight: Write[] = []
  /** Of {@link #queue} and {@link #inFlight}. */
  #queuedBytes = 0
  readonly #maxQueuedBytes: number
  #flushScheduled = false
  #newestRevision = 0
  #durableRevision = 0
  #lastId = 0
  #broken: string | undefined
  #closing: { resolve(): void } | undefined
  #closed: Promise<void> | undefined
  #backup: { resolve(): void; reject(error: Error): void } | undefined
  readonly #corruption = new CorruptionReport()
  #report: OpenReport | undefined
  #forgetting: NodeJS.Timeout | undefined
  #stats = { writes: 0, commits: 0, failedWrites: 0, lastCommitMs: 0 }

  private constructor(worker: Worker, loadedBatches: Int32Array<SharedArrayBuffer>, options: StoreOptions) {
    this.#worker = worker
    this.#loadedBatches = loadedBatches
    this.#partition = options.partition ?? 0
    this.#history = options.history ?? defaultHistory
    this.#maxQueuedBytes = options.maxQueuedBytes ?? defaultMaxQueuedBytes
    this.#nowMs = options.nowMs ?? Date.now
    this.#log = options.log ?? (() => {})
  }

  /**
   * Opens the database of a data directory, checks it and reads every object.
   * @throws {ServerStartError} when another process has it, or it is newer, damaged, gone or not writable.
   */
  static async open(options: StoreOptions): Promise<Store> {
    const { partition = 0, dataDir, synchronous = 'FULL' } = options
    if (!Number.isInteger(partition) || partition < 0 || partition > 63) throw new RangeError(`partition must be 0 to 63, got ${partition}`)
    const file = join(dataDir, 'oarlock.db')
    refuseIfGone(dataDir, file)
    const loadedBatches = new Int32Array(new SharedArrayBuffer(4))
    const workerData: StorageThreadOptions = { file, synchronous, loadedBatches }
    const worker = startThread('kubernetes/server/storage/commit-worker', {
      workerData,
      name: 'oarlock-store',
      resourceLimits: { maxYoungGenerationSizeMb: 2 },
    })
    const store = new Store(worker, loadedBatches, options)
    await new Promise<void>((resolve, reject) => {
      worker.on('message', (message: FromStorageThread) => {
        if (message.type === 'refused') reject(new ServerStartError(message.code, message.message))
        store.#receive(message)
        if (message.type !== 'ready') return
        if (store.#corruption.isEmpty) resolve()
        else void worker.terminate().then(() => reject(store.#corruption.toError(file, store.stats().objects)))
      })
      worker.on('error', (error: Error) => {
        store.#break(`the storage thread failed: ${error.message}`)
        reject(error)
      })
      worker.on('exit', () => {
        if (!store.#closing) store.#break('the storage thread ended')
        store.#closing?.resolve()
      })
    })
    store.#forgetting = setInterval(() => store.#forgetHistory(), forgetEveryMs).unref()
    return store
  }

  /** The newest durable revision: what lists and bookmarks carry. */
  get revision(): number {
    return this.#durableRevision
  }

  /** The newest revision handed out, durable or not: every later write gets a higher one. */
  get newestRevision(): number {
    return this.#newestRevision
  }

  /** Why nothing can be written any more; only opening it again helps. */
  get failure(): string | undefined {
    return this.#broken
  }

  /** What was found when it was opened. */
  get report(): OpenReport | undefined {
    return this.#report
  }

  get nowMs(): number {
    return this.#nowMs()
  }

  /** The table of a resource, such as `stacks.oarlock.dev`; made when asked for first. */
  table(name: string): Table {
    let table = this.#tables.get(name)
    if (!table) {
      table = new Table(name, this.#history)
      table.setFloor(this.#durableRevision)
      this.#tables.set(name, table)
      this.#heads.set(table, new Map())
    }
    return table
  }

  tables(): IterableIterator<Table> {
    return this.#tables.values()
  }

  onCommit(listener: CommitListener): void {
    this.#commitListeners.push(listener)
  }

  // What is committed is committed: a listener that fails must not keep the writers waiting.
  #tell(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.#log(`a listener of commits failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
  }

  /** The newest version of an object, written but perhaps not durable: what a write must be computed from. */
  head(table: Table, key: string): Entry | undefined {
    const write = this.#heads.get(table)!.get(key)
    return write ? write.after : table.get(key)
  }

  /** Writes on their way to disk: the newest version of each key they are about, undefined for one that goes. */
  *pending(table: Table): Generator<{ key: string; after: Entry | undefined }> {
    yield* this.#heads.get(table)!.values()
  }

  /** The newest version of every object: what {@link head} gives for each key. */
  *heads(table: Table): Generator<Entry> {
    const writes = this.#heads.get(table)!
    for (const entry of table.values()) if (!writes.has(entry.key)) yield entry
    for (const { after } of writes.values()) if (after) yield after
  }

  /** Ends when the newest write to a key is durable or has failed; undefined when nothing is under way. */
  settled(table: Table, key: string): Promise<unknown> | undefined {
    const write = this.#heads.get(table)!.get(key)
    return write?.durable.catch(() => undefined)
  }

  /**
   * Writes `object` over `before`, which must be the {@link head} of its key (undefined: there is none).
   * Takes the object over and sets its resource version. Ends when the write is on disk.
   * @throws {StatusError} InsufficientStorage when the disk is full; nothing has changed then.
   */
  put(table: Table, before: Entry | undefined, object: KubeObject): Promise<Entry> {
    const after = this.#entry(table, before, object)
    const durable = this.#enqueue(table, before, after, after)
    if (!before) table.onCreate?.(after)
    return durable
  }

  /** Deletes `before`, the {@link head} of its key. `object` is its last state, which watchers get to see. */
  remove(table: Table, before: Entry, object: KubeObject): Promise<Entry> {
    return this.#enqueue(table, before, undefined, this.#entry(table, before, object))
  }

  stats(): StoreStats {
    let objects = 0
    let bytes = 0
    for (const table of this.#tables.values()) {
      objects += table.size
      bytes += table.bytes
    }
    return { objects, bytes, ...this.#stats, queued: this.#queue.length + this.#inFlight.length, queuedBytes: this.#queuedBytes }
  }

  /**
   * Copies the database to `path`, a new file, while writes go on: it holds at least every write acknowledged before the call.
   * One at a time.
   * @throws {StatusError} TooManyRequests while another is under way; an Error when the copy cannot be written.
   */
  async backUp(path: string): Promise<void> {
    if (this.#broken) throw new StatusError('InternalError', `${this.#broken}: restart the server`)
    if (this.#backup) throw new StatusError('TooManyRequests', 'a backup is under way: try again when it is done')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#backup = { resolve, reject }
    this.#post({ type: 'backup', path })
    await promise
  }

  /** Finishes what is queued, and a backup under way, and lets the file go. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  #forgetHistory(): void {
    // A revision says when it was made.
    const revision = nextRevision(0, this.#nowMs() - historyMs, this.#partition)
    for (const table of this.#tables.values()) table.compactHistory(revision, lastingEvents)
  }

  async #close(): Promise<void> {
    clearInterval(this.#forgetting)
    while (!this.#broken && (this.#queue.length > 0 || this.#inFlight.length > 0)) {
      await (this.#queue.at(-1) ?? this.#inFlight.at(-1))?.durable.catch(() => undefined)
    }
    if (this.#broken) {
      await this.#worker.terminate()
      return
    }
    await new Promise<void>(resolve => {
      this.#closing = { resolve }
      this.#post({ type: 'close' })
    })
  }

  #entry(table: Table, before: Entry | undefined, object: KubeObject): Entry {
    const revision = nextRevision(this.#newestRevision, this.#nowMs(), this.#partition)
    this.#newestRevision = revision
    object.metadata.resourceVersion = String(revision)
    return entryOf(before?.id ?? ++this.#lastId, object, revision, asciiJson(object), table.readFields)
  }

  #enqueue(table: Table, before: Entry | undefined, after: Entry | undefined, last: Entry): Promise<Entry> {
    if (this.#broken) return Promise.reject(new StatusError('InternalError', `${this.#broken}: restart the server`))
    if (this.#closing) return Promise.reject(new StatusError('ServiceUnavailable', 'the server is stopping: nothing was written'))
    if (this.#queuedBytes >= this.#maxQueuedBytes) return Promise.reject(behind())
    const { promise: durable, resolve, reject } = Promise.withResolvers<Entry>()
    const heads = this.#heads.get(table)!
    const previous = heads.get(last.key)
    // Two rows of one key would be damage: the next start would refuse them.
    if ((previous ? previous.after : table.get(last.key)) !== before) {
      return Promise.reject(new Error(`bug: ${table.name} ${last.key} is not written over its newest version`))
    }
    this.#queuedBytes += last.text.length
    const write: Write = { table, key: last.key, before, after, last, previous, isNew: !before, failed: false, durable, resolve, reject }
    heads.set(last.key, write)
    this.#queue.push(write)
    this.#schedule()
    return durable
  }

  // Waits for the rest of this turn of the event loop: everything that arrived together shares a commit.
  #schedule(): void {
    if (this.#flushScheduled || this.#inFlight.length > 0 || this.#queue.length === 0) return
    this.#flushScheduled = true
    setImmediate(() => {
      this.#flushScheduled = false
      this.#flush()
    })
  }

  #flush(): void {
    if (this.#inFlight.length > 0 || this.#queue.length === 0 || this.#broken) return
    let count = 0
    for (let bytes = 0; count < this.#queue.length && count < maxWritesPerCommit && bytes < maxBytesPerCommit; count++) {
      bytes += this.#queue[count]!.last.text.length
    }
    const batch = count === this.#queue.length ? this.#queue : this.#queue.slice(0, count)
    this.#queue = batch === this.#queue ? [] : this.#queue.slice(count)
    this.#inFlight = batch
    this.#post(toCommitBatch(batch))
  }

  #post(message: ToStorageThread): void {
    this.#worker.postMessage(message)
  }

  #receive(message: FromStorageThread): void {
    switch (message.type) {
      case 'rows':
        this.#load(message)
        Atomics.add(this.#loadedBatches, 0, 1)
        Atomics.notify(this.#loadedBatches, 0)
        return
      case 'ready':
        this.#newestRevision = Math.max(this.#newestRevision, message.floor)
        for (const [resource, revision] of message.revisions) {
          this.table(resource).setFloor(Math.max(revision, message.floor))
          this.#newestRevision = Math.max(this.#newestRevision, revision)
        }
        this.#report = message.report
        for (const corruption of message.report.corruptions) this.#corruption.add(corruption)
        this.#durableRevision = this.#newestRevision
        return
      case 'committed':
        this.#stats.lastCommitMs = message.durationMs
        this.#committed()
        return
      case 'failed':
        this.#failed(message.errcode, message.message)
        return
      case 'backedUp': {
        const backup = this.#backup
        this.#backup = undefined
        if (message.error === undefined) backup?.resolve()
        else backup?.reject(new Error(message.error))
        return
      }
    }
  }

  #load({ resources, numbers, keys, texts }: RowsBatch): void {
    for (let i = 0; i < texts.length; i++) {
      const row: Row = [numbers[3 * i]!, resources[numbers[3 * i + 2]!]!, keys[i]!, numbers[3 * i + 1]!, texts[i]!]
      const [id, resource, key, revision, text] = row
      if (id > this.#lastId) this.#lastId = id
      if (revision > this.#newestRevision) this.#newestRevision = revision
      try {
        const object = JSON.parse(text) as KubeObject
        const table = this.table(resource)
        const failure = rowError(row, object) ?? (table.get(key) && `${resource} ${key} is there twice`)
        if (failure) this.#corruption.add({ what: failure, rows: 1 })
        else table.load(id, object, revision, text)
      } catch (error) {
        this.#corruption.add({ what: `${resource} ${key} (row ${id}) cannot be read (${(error as Error).message})`, rows: 1 })
      }
    }
  }

  #committed(): void {
    const batch = this.#inFlight
    this.#inFlight = []
    // The next commit starts before this one's answers are written: the disk does not wait for us.
    this.#flush()
    const events = new Map<Table, StoredEvent[]>()
    for (const write of batch) {
      const { table, before, after, last } = write
      const event = table.apply(before, after, last)
      const ofTable = events.get(table)
      if (ofTable) ofTable.push(event)
      else events.set(table, [event])
      write.previous = undefined
      this.#queuedBytes -= last.text.length
      this.#forget(write)
    }
    this.#durableRevision = batch.at(-1)!.last.revision
    this.#stats.commits++
    this.#stats.writes += batch.length
    for (const [table, ofTable] of events) {
      for (const listener of this.#commitListeners) this.#tell(() => listener(table, ofTable))
      for (const listener of table.listeners) this.#tell(() => listener(ofTable))
    }
    for (const write of batch) write.resolve(write.last)
    this.#schedule()
  }

  #failed(errcode: number, message: string): void {
    const primary = errcode & 0xff
    const isFull = primary === sqliteFull || /no space left|disk is full/i.test(message)
    const error = () =>
      isFull
        ? new StatusError(
            'InsufficientStorage',
            'the disk of the data directory is full: nothing was written; free some space and try again',
            { code: 507 },
          )
        : new StatusError('InternalError', `the write could not be stored (${message}): look at the object before you repeat it`)
    this.#log(`storage: commit failed: ${message}`)
    const batch = this.#inFlight
    this.#inFlight = []
    // Writes computed from one that failed fail with it; the others did not see it.
    for (const write of batch) write.failed = true
    const kept: Write[] = []
    const lost = [...batch]
    for (const write of this.#queue) {
      write.failed = write.previous?.failed === true
      ;(write.failed ? lost : kept).push(write)
    }
    this.#queue = kept
    for (const write of lost) {
      this.#queuedBytes -= write.last.text.length
      this.#forget(write)
      write.reject(error())
    }
    this.#stats.failedWrites += lost.length
    this.#schedule()
  }

  #forget(write: Write): void {
    const heads = this.#heads.get(write.table)!
    if (heads.get(write.key) === write) heads.delete(write.key)
  }

  #break(reason: string): void {
    if (this.#broken) return
    this.#broken = reason
    this.#log(`storage: ${reason}`)
    const lost = [...this.#inFlight, ...this.#queue]
    this.#inFlight = []
    this.#queue = []
    for (const write of lost) {
      this.#forget(write)
      write.reject(new StatusError('InternalError', `${reason}: restart the server`))
    }
  }
}

/** A server that starts empty where there was one with objects would look like one that lost them. */
function refuseIfGone(dataDir: string, file: string): void {
  if (existsSync(file) && statSync(file).size > 0) return
  const evidence = [`${file}-wal`, join(dataDir, 'kubeconfig')].find(existsSync)
  if (evidence === undefined) return
  throw new ServerStartError(
    'DataMissing',
    `${file} is ${existsSync(file) ? 'empty' : 'missing'}, but ${evidence} says that a server has run here: put the file back, ` +
      `restore a backup (oarlock restore BACKUP --data ${dataDir}), or remove ${evidence} to start empty`,
  )
}

function behind(): StatusError {
  return new StatusError('TooManyRequests', 'the disk does not keep up with the writes: nothing was written; try again later', {
    details: { retryAfterSeconds: 1 },
  })
}

function toCommitBatch(writes: readonly Write[]): CommitBatch {
  const resources: string[] = []
  const numbers = new Float64Array(writes.length * 3)
  const keys = new Array<string>(writes.length)
  const texts = new Array<string>(writes.length)
  for (const [i, { table, after, last, isNew }] of writes.entries()) {
    let resource = resources.lastIndexOf(table.name)
    if (resource < 0) resource = resources.push(table.name) - 1
    numbers[3 * i] = last.id
    numbers[3 * i + 1] = last.revision
    numbers[3 * i + 2] = resource
    keys[i] = after && isNew ? last.key : ''
    texts[i] = after ? after.text : ''
  }
  return { type: 'commit', resources, numbers, keys, texts }
}
