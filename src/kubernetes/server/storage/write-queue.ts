import type { StoredEntry } from './entry.ts'
import type { Table } from './table.ts'
import { tooManyQueuedBytesError } from './write-errors.ts'

/** A write that is not durable yet. */
export type Write = {
  readonly table: Table
  readonly key: string
  readonly before: StoredEntry | undefined
  /** Undefined for a deletion. */
  readonly after: StoredEntry | undefined
  /** What events show: `after`, or the last state of a deleted object. */
  readonly last: StoredEntry
  /** The write that `before` comes from, until that is durable. It is cleared then, or a busy key would become a chain. */
  previous: Write | undefined
  readonly isNew: boolean
  /** Needs no disk to be acknowledged, see `deferred-writes.ts`. */
  readonly isDeferred: boolean
  hasFailed: boolean
  readonly durable: Promise<StoredEntry>
  resolve(entry: StoredEntry): void
  reject(error: Error): void
}

const maxWritesPerCommit = 2_000
/** Bound on one message to the storage thread: both threads hold it, and a commit of this size takes about 0.1 s. */
const maxBytesPerCommit = 8 * 1024 * 1024

/**
 * Writes on their way to disk: queued ones and the batch that is being committed, and the newest write of each key.
 * Bytes beyond `maxBytes` are rejected until the disk has caught up (invariant 10).
 */
export class WriteQueue {
  readonly #maxBytes: number
  readonly #newest = new Map<Table, Map<string, Write>>()
  #queued: Write[] = []
  #inFlight: Write[] = []
  /** Of `#queued` and `#inFlight`. */
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get size(): number {
    return this.#queued.length + this.#inFlight.length
  }

  get bytes(): number {
    return this.#bytes
  }

  get hasQueued(): boolean {
    return this.#queued.length > 0
  }

  /** The writes that wait for the next batch. */
  get queued(): readonly Write[] {
    return this.#queued
  }

  /** The write that was added last, if any is pending. */
  get last(): Write | undefined {
    return this.#queued.at(-1) ?? this.#inFlight.at(-1)
  }

  addTable(table: Table): void {
    this.#newest.set(table, new Map())
  }

  /** The newest pending write of each key of `table`. */
  newest(table: Table): ReadonlyMap<string, Write> {
    return this.#newest.get(table)!
  }

  /**
   * Queues a write over `before`, which must be the newest version of the key. Resolves with `last` when it is durable.
   * Rejects with TooManyRequests when the queue is full.
   */
  add(
    table: Table,
    before: StoredEntry | undefined,
    after: StoredEntry | undefined,
    last: StoredEntry,
    isDeferred = false,
  ): Promise<StoredEntry> {
    if (this.#bytes >= this.#maxBytes) return Promise.reject(tooManyQueuedBytesError())
    const { promise: durable, resolve, reject } = Promise.withResolvers<StoredEntry>()
    const newest = this.#newest.get(table)!
    const previous = newest.get(last.key)
    // Two rows of one key would be corruption, and the next start would fail on it.
    if ((previous ? previous.after : table.get(last.key)) !== before) {
      return Promise.reject(new Error(`bug: the write to ${table.name} ${last.key} is not based on its newest version`))
    }
    this.#bytes += last.text.length
    const state = { isNew: !before, isDeferred, hasFailed: false }
    const write: Write = { table, key: last.key, before, after, last, previous, ...state, durable, resolve, reject }
    newest.set(last.key, write)
    this.#queued.push(write)
    return durable
  }

  /** Moves the next batch from the queue to the disk, bounded in number and bytes. */
  startBatch(): readonly Write[] {
    let count = 0
    for (let bytes = 0; count < this.#queued.length && count < maxWritesPerCommit && bytes < maxBytesPerCommit; count++) {
      bytes += this.#queued[count]!.last.text.length
    }
    const batch = count === this.#queued.length ? this.#queued : this.#queued.slice(0, count)
    this.#queued = batch === this.#queued ? [] : this.#queued.slice(count)
    this.#inFlight = batch
    return batch
  }

  /** Ends the batch: nothing is being committed from here on. The caller calls {@link complete} for each of its writes. */
  endBatch(): readonly Write[] {
    const batch = this.#inFlight
    this.#inFlight = []
    return batch
  }

  /** `write` is durable. */
  complete(write: Write): void {
    write.previous = undefined
    this.#bytes -= write.last.text.length
    this.#remove(write)
  }

  /**
   * Rejects the batch and every queued write that was computed from it; the others did not see it, and deferred ones did not need the
   * disk. Returns how many were rejected.
   */
  failBatch(makeError: () => Error): number {
    const kept: Write[] = []
    const rejected: Write[] = []
    const batch = new Set(this.endBatch())
    for (const write of [...batch, ...this.#queued]) {
      write.hasFailed = write.previous?.hasFailed === true || (batch.has(write) && !write.isDeferred)
      ;(write.hasFailed ? rejected : kept).push(write)
    }
    this.#queued = kept
    for (const write of rejected) {
      this.#bytes -= write.last.text.length
      this.#remove(write)
      write.reject(makeError())
    }
    return rejected.length
  }

  /** Rejects everything: the disk is lost for good. */
  failAll(makeError: () => Error): void {
    const rejected = [...this.#inFlight, ...this.#queued]
    this.#inFlight = []
    this.#queued = []
    for (const write of rejected) {
      this.#remove(write)
      write.reject(makeError())
    }
  }

  #remove(write: Write): void {
    const newest = this.#newest.get(write.table)!
    if (newest.get(write.key) === write) newest.delete(write.key)
  }
}
