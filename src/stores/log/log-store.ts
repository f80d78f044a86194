import { mkdir, rm, rmdir } from 'node:fs/promises'
import { dirname, relative } from 'node:path'
import { makeDirectories } from '../../kubernetes/util/index.ts'
import { decideAppend, decideEnd, emptyLog, type LogState } from './decide-append.ts'
import { appendToLog, findTail, formatMeta, readLog, recoverLog } from './log-file.ts'
import { type LogTime, offsetSince, readTimes, readTimesFile, recordTime, recoverTimes, type TimesState } from './log-times.ts'
import { LogUsage } from './log-usage.ts'
import { logPath, type RunKey } from './run-key.ts'

export type LogLimits = {
  /** Maximum bytes of one Run's log; the rest is dropped, and a mark is added. Default 10 MiB. */
  bytesPerRun: number
  /** Maximum bytes of one line; the rest is dropped, and a mark is added. Default 16 KiB. */
  lineBytes: number
  /** Maximum number of logs; the oldest ended ones are deleted first. Default 10,000. */
  retainedRuns: number
  /** Maximum bytes of all logs; the oldest ended ones are deleted first. Default 4 GiB. */
  totalBytes: number
  /** Time without a write after which a log that has not ended may be deleted too. Default 3,600,000 (an hour). */
  abandonedAfterMs: number
}

const defaultLogLimits: LogLimits = {
  bytesPerRun: 10 * 1024 * 1024,
  lineBytes: 16 * 1024,
  retainedRuns: 10_000,
  totalBytes: 4 * 1024 * 1024 * 1024,
  abandonedAfterMs: 3_600_000,
}

export type AppendResult =
  /** Stored, or dropped by a limit; `offset` is where the next append begins. `isFull`: what follows is dropped. */
  | { kind: 'appended'; offset: number; isFull?: true }
  /** Bytes before the offset are missing; `expected` is where the append must begin. */
  | { kind: 'gap'; expected: number }
  | { kind: 'ended' }

export type ReadOptions = {
  /** Offset of the first byte to read. Default 0. */
  offset?: number | undefined
  /** Read this many lines from the end instead. */
  tailLines?: number | undefined
  /** Begin with what was stored at this time or later (milliseconds since the epoch). No effect on a log without times. */
  sinceMs?: number | undefined
}

/** A file of a log; `name` is its path below the directory of the store. */
export type LogFile = { name: string; size: number; content: AsyncIterable<Buffer> | Iterable<Buffer> }

export type LogStats = { runs: number; bytes: number; droppedLogs: number; followers: number }

/** An open log. */
type LogEntry = {
  readonly path: string
  /** Undefined until it is read from disk. */
  state: LogState | undefined
  /** Undefined until it is read from disk. */
  times: TimesState | undefined
  /** Serializes the operations on the log. */
  queue: Promise<unknown>
  users: number
  readonly followers: Set<() => void>
  /** Increases when the log is removed, which ends its followers. */
  generation: number
}

const readBytes = 64 * 1024
const ifFull = ({ droppedBytes }: LogState): { isFull?: true } => (droppedBytes === undefined ? {} : { isFull: true })
const maxIdleEntries = 256

/**
 * Run logs as plain files, `<directory>/<namespace>/<run>.log`, each with a small `.meta` file and its times in `.times`. One process at a time.
 *
 * Writes are not fsynced: the kernel keeps what a killed process wrote, and only a power failure may lose the last seconds.
 */
export class LogStore {
  readonly limits: LogLimits
  readonly #directory: string
  readonly #nowMs: () => number
  readonly #entries = new Map<string, LogEntry>()
  readonly #usage: LogUsage
  #droppedLogs = 0
  #followers = 0
  readonly #scanned: Promise<void>
  #deletion: Promise<void> | undefined
  #nextDeletionMs = 0

  /** Use {@link openLogStore}. */
  constructor(directory: string, limits: LogLimits, nowMs: () => number) {
    makeDirectories(directory, 0o700)
    this.#directory = directory
    this.limits = limits
    this.#nowMs = nowMs
    this.#usage = new LogUsage(limits)
    this.#scanned = this.#usage.scan(directory)
    this.#scanned.catch(() => undefined)
  }

  /**
   * Appends bytes; `offset` counts all bytes that the sender has ever sent for this Run. Idempotent: bytes received before are skipped.
   * @throws {LogNameError} for invalid names, or the disk's error (nothing was appended then, so retry).
   */
  async append(key: RunKey, offset: number, bytes: Uint8Array): Promise<AppendResult> {
    if (!Number.isSafeInteger(offset) || offset < 0) throw new RangeError(`offset must be a whole number >= 0, got ${offset}`)
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const result = await this.#use(key, async (entry): Promise<AppendResult> => {
      const state = await this.#load(entry)
      const decision = decideAppend(state, offset, buffer, this.limits)
      if (decision.kind === 'duplicate') return { kind: 'appended', offset: state.received, ...ifFull(state) }
      if (decision.kind !== 'append') return decision
      await this.#write(entry, state, decision.state, decision.output)
      return { kind: 'appended', offset: decision.state.received, ...ifFull(decision.state) }
    })
    await this.#enforceLimits()
    return result
  }

  /** Where the next append begins. */
  async receivedBytes(key: RunKey): Promise<number> {
    return await this.#use(key, async entry => (await this.#load(entry)).received)
  }

  /**
   * Marks the log as complete: followers get the rest and end. Idempotent; a Run without output gets an empty log. `unsentBytes`: what the
   * sender dropped because the log was full.
   */
  async end(key: RunKey, unsentBytes = 0): Promise<void> {
    await this.#use(key, async entry => {
      const state = await this.#load(entry)
      if (state.ended) return
      const ended = decideEnd(state, this.limits, unsentBytes)
      await this.#write(entry, state, ended.state, ended.output)
    })
  }

  /** Reads the stored log. `offset` is the offset of the first byte in `bytes`, `nextOffset` that of the next one. Empty for a Run without a log. */
  async read(key: RunKey, options: ReadOptions = {}): Promise<{ bytes: Buffer; offset: number; nextOffset: number; ended: boolean }> {
    return await this.#use(key, async entry => {
      const { size, ended } = await this.#load(entry)
      const offset = await startOffset(entry.path, size, options)
      const bytes = await readLog(entry.path, offset, size - offset)
      return { bytes, offset, nextOffset: offset + bytes.byteLength, ended }
    })
  }

  /**
   * Yields the log from `options` on and then each append, until the log ends or is removed or `signal` aborts.
   * Every follower reads from the file at its own pace, so a slow one needs no memory.
   */
  async *follow(
    key: RunKey,
    options: ReadOptions & { signal?: AbortSignal; onStart?: (offset: number) => void } = {},
  ): AsyncGenerator<Buffer, void, undefined> {
    const { signal } = options
    const entry = this.#entry(key)
    const { generation } = entry
    entry.users++
    this.#followers++
    let wake: () => void = () => undefined
    let changed = false
    const notify = () => {
      changed = true
      wake()
    }
    entry.followers.add(notify)
    signal?.addEventListener('abort', notify)
    try {
      const { size } = await this.#inOrder(entry, () => this.#load(entry))
      let at = await startOffset(entry.path, size, options)
      options.onStart?.(at)
      while (!signal?.aborted && entry.generation === generation) {
        changed = false
        const { state } = entry
        if (state !== undefined && at < state.size) {
          const bytes = await readLog(entry.path, at, Math.min(readBytes, state.size - at))
          if (bytes.byteLength === 0) return
          at += bytes.byteLength
          yield bytes
          continue
        }
        if (state?.ended) return
        await new Promise<void>(resolve => {
          wake = resolve
          if (changed) resolve()
        })
      }
    } finally {
      entry.followers.delete(notify)
      signal?.removeEventListener('abort', notify)
      this.#followers--
      this.#release(entry)
    }
  }

  /** When the parts of the stored log were stored; empty for a log of an earlier version. */
  async times(key: RunKey): Promise<LogTime[]> {
    return await readTimes(logPath(this.#directory, key))
  }

  /** Deletes a Run's log; its followers end. */
  async remove(key: RunKey): Promise<void> {
    await this.#use(key, entry => this.#delete(entry))
  }

  /** Yields the files of every log as they are at that time, in chunks. A log that is deleted meanwhile ends early. */
  async *backUp(): AsyncGenerator<LogFile, void, undefined> {
    await this.#scanned
    for (const path of this.#usage.paths()) {
      if (!this.#usage.has(path)) continue
      const entry = this.#entryAt(path)
      entry.users++
      try {
        const { size, ...state } = await this.#inOrder(entry, () => this.#load(entry))
        const name = relative(this.#directory, path)
        const meta = formatMeta({ size, ...state })
        yield { name: `${name}.meta`, size: meta.byteLength, content: [meta] }
        // What is stored of a log does not change: it is only appended to.
        yield { name: `${name}.log`, size, content: readInChunks(path, size) }
        const times = await readTimesFile(path)
        if (times) yield { name: `${name}.times`, size: times.byteLength, content: [times] }
      } finally {
        this.#release(entry)
      }
    }
  }

  async stats(): Promise<LogStats> {
    await this.#scanned
    return { runs: this.#usage.logs, bytes: this.#usage.bytes, droppedLogs: this.#droppedLogs, followers: this.#followers }
  }

  /** Ends all followers and waits for pending writes. */
  async close(): Promise<void> {
    const entries = [...this.#entries.values()]
    for (const entry of entries) {
      entry.generation++
      notifyAll(entry)
    }
    await Promise.all(entries.map(({ queue }) => queue))
    await Promise.allSettled([this.#scanned, this.#deletion])
  }

  #entry(key: RunKey): LogEntry {
    return this.#entryAt(logPath(this.#directory, key))
  }

  #entryAt(path: string): LogEntry {
    let entry = this.#entries.get(path)
    if (entry === undefined) {
      entry = { path, state: undefined, times: undefined, queue: Promise.resolve(), users: 0, followers: new Set(), generation: 0 }
      this.#entries.set(path, entry)
    }
    return entry
  }

  async #use<T>(key: RunKey, work: (entry: LogEntry) => Promise<T>): Promise<T> {
    const entry = this.#entry(key)
    entry.users++
    try {
      return await this.#inOrder(entry, () => work(entry))
    } finally {
      this.#release(entry)
    }
  }

  #inOrder<T>(entry: LogEntry, work: () => Promise<T>): Promise<T> {
    const done = entry.queue.then(work)
    entry.queue = done.catch(() => undefined)
    return done
  }

  #release(entry: LogEntry): void {
    entry.users--
    if (this.#entries.size <= maxIdleEntries) return
    for (const [path, { users }] of this.#entries) if (users === 0) this.#entries.delete(path)
  }

  async #load(entry: LogEntry): Promise<LogState> {
    entry.state ??= await recoverLog(entry.path, this.limits.bytesPerRun)
    return entry.state
  }

  async #write(entry: LogEntry, before: LogState, after: LogState, output: Buffer): Promise<void> {
    // Counted even if the write fails, because it may have created files.
    if (!this.#usage.has(entry.path)) this.#usage.set(entry.path, before.size)
    await mkdir(dirname(entry.path), { recursive: true, mode: 0o700 })
    // First, so that no line is shown with the time of an earlier one.
    entry.times ??= await recoverTimes(entry.path)
    if (output.byteLength > 0) entry.times = await recordTime(entry.path, entry.times, before.size, this.#nowMs())
    await appendToLog(entry.path, before, after, output)
    entry.state = after
    this.#usage.set(entry.path, after.size)
    notifyAll(entry)
  }

  async #delete(entry: LogEntry): Promise<void> {
    await this.#scanned
    // In a large fleet most deleted Runs have no log here.
    if (this.#usage.has(entry.path)) {
      await rm(`${entry.path}.log`, { force: true })
      await rm(`${entry.path}.meta`, { force: true })
      await rm(`${entry.path}.times`, { force: true })
      await rmdir(dirname(entry.path)).catch(() => undefined)
      this.#usage.delete(entry.path)
    }
    entry.state = emptyLog
    entry.times = undefined
    entry.generation++
    notifyAll(entry)
  }

  /** Deletes logs above the limits (invariant 10). Appends wait for it, so that they cannot be faster than the deletion. */
  async #enforceLimits(): Promise<void> {
    await this.#scanned
    if (!this.#usage.exceeds(1) || this.#nowMs() < this.#nextDeletionMs) return
    this.#deletion ??= this.#deleteOldest().finally(() => {
      this.#deletion = undefined
      // The remaining logs are in use: trying again on every append would not help.
      if (this.#usage.exceeds(1)) this.#nextDeletionMs = this.#nowMs() + 10_000
    })
    await this.#deletion
  }

  async #deleteOldest(): Promise<void> {
    const logs = await this.#usage.oldestFirst()
    for (const onlyEnded of [true, false]) {
      for (const { path, mtimeMs } of logs) {
        // Below the limit, so that not every append at the limit checks every log.
        if (!this.#usage.exceeds(0.9)) return
        if (!this.#usage.has(path)) continue
        const entry = this.#entryAt(path)
        entry.users++
        await this.#inOrder(entry, async () => {
          const { ended } = await this.#load(entry)
          if (!ended && (onlyEnded || this.#nowMs() - mtimeMs < this.limits.abandonedAfterMs)) return
          await this.#delete(entry)
          this.#droppedLogs++
        }).finally(() => this.#release(entry))
      }
    }
  }
}

/** Opens the logs below `directory`, which is created if absent. Logs that had not ended continue. */
export function openLogStore(options: { directory: string; limits?: Partial<LogLimits>; nowMs?: () => number }): LogStore {
  return new LogStore(options.directory, { ...defaultLogLimits, ...options.limits }, options.nowMs ?? Date.now)
}

async function* readInChunks(path: string, size: number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < size; ) {
    const bytes = await readLog(path, at, Math.min(readBytes, size - at))
    if (bytes.byteLength === 0) return
    at += bytes.byteLength
    yield bytes
  }
}

function notifyAll(entry: LogEntry): void {
  for (const notify of entry.followers) notify()
}

async function startOffset(path: string, size: number, { offset = 0, tailLines, sinceMs }: ReadOptions): Promise<number> {
  const start = tailLines === undefined ? Math.min(Math.max(0, offset), size) : await findTail(path, size, tailLines)
  return sinceMs === undefined ? start : Math.max(start, offsetSince(await readTimes(path), sinceMs, size))
}
