import { mkdirSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rm, rmdir, stat, truncate } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { decideAppend, decideEnd, emptyLog, type LogState } from './decide-append.ts'
import { logPath, type RunKey } from './run-key.ts'

export type LogLimits = {
  /** Bytes of one Run's log; the rest is dropped with a mark. Default 10 MiB. */
  bytesPerRun: number
  /** Bytes of one line; the rest is dropped with a mark. Default 16 KiB. */
  lineBytes: number
  /** Logs kept; the oldest ended ones go first. Default 10,000. */
  retainedRuns: number
  /** Bytes of all logs; the oldest ended ones go first. Default 4 GiB. */
  totalBytes: number
  /** A log that was never ended and not written for so long may be dropped too. Default 3,600,000 (an hour). */
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
  /** Stored, or dropped by a limit; `offset` is where the next append begins. */
  { kind: 'appended'; offset: number } | { kind: 'gap'; expected: number } | { kind: 'ended' }

export type ReadOptions = {
  /** First stored byte. Default 0. */
  offset?: number
  /** Begin this many lines before the end instead. */
  tailLines?: number
}

export type LogStats = { runs: number; bytes: number; droppedLogs: number; followers: number }

type Entry = {
  readonly path: string
  /** Undefined until read from disk. */
  state: LogState | undefined
  /** Work on one log is done in order. */
  queue: Promise<unknown>
  users: number
  readonly followers: Set<() => void>
  /** Rises when the log is removed: who follows it then is done. */
  generation: number
}

const readBytes = 64 * 1024
const metaBytes = 512
const maxIdleEntries = 256

/**
 * Run logs as plain files, `<directory>/<namespace>/<run>.log`, each with a small `.meta` beside it. One process at a time.
 *
 * Not fsynced: a log line is not worth a disk flush, and the kernel keeps what a killed process wrote. A power cut may lose the last seconds.
 */
export class LogStore {
  readonly limits: LogLimits
  readonly #directory: string
  readonly #nowMs: () => number
  readonly #entries = new Map<string, Entry>()
  /** Every log on disk with its stored bytes. */
  readonly #sizes = new Map<string, number>()
  #totalBytes = 0
  #droppedLogs = 0
  #followers = 0
  readonly #scanned: Promise<void>
  #sweeping: Promise<void> | undefined
  #nextSweepMs = 0

  /** Use {@link openLogStore}. */
  constructor(directory: string, limits: LogLimits, nowMs: () => number) {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    this.#directory = directory
    this.limits = limits
    this.#nowMs = nowMs
    this.#scanned = this.#scan()
    this.#scanned.catch(() => undefined)
  }

  /**
   * Appends what the sender counts from `offset` of all it ever sent for this Run. Idempotent: what came before is skipped.
   * @throws {LogNameError} for names that are none, or the disk's error (nothing was appended then; append it again).
   */
  async append(key: RunKey, offset: number, bytes: Uint8Array): Promise<AppendResult> {
    if (!Number.isSafeInteger(offset) || offset < 0) throw new RangeError(`offset must be a whole number >= 0, got ${offset}`)
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const result = await this.#use(key, async (entry): Promise<AppendResult> => {
      const state = await this.#load(entry)
      const verdict = decideAppend(state, offset, buffer, this.limits)
      if (verdict.kind === 'duplicate') return { kind: 'appended', offset: state.received }
      if (verdict.kind !== 'append') return verdict
      await this.#write(entry, state, verdict.state, verdict.output)
      return { kind: 'appended', offset: verdict.state.received }
    })
    await this.#sweep()
    return result
  }

  /** Where the next append begins. */
  async receivedBytes(key: RunKey): Promise<number> {
    return await this.#use(key, async entry => (await this.#load(entry)).received)
  }

  /** Nothing more comes. Followers get the rest and end. Repeating it is safe; a Run that logged nothing has an empty log then. */
  async end(key: RunKey): Promise<void> {
    await this.#use(key, async entry => {
      const state = await this.#load(entry)
      if (state.ended) return
      const ended = decideEnd(state, this.limits)
      await this.#write(entry, state, ended.state, ended.output)
    })
  }

  /** What is stored now. `offset` is of the first byte in `bytes`, `nextOffset` of the first one after. A Run without a log has an empty one. */
  async read(key: RunKey, options: ReadOptions = {}): Promise<{ bytes: Buffer; offset: number; nextOffset: number; ended: boolean }> {
    return await this.#use(key, async entry => {
      const { size, ended } = await this.#load(entry)
      const offset = await this.#start(entry, size, options)
      const bytes = await readRange(entry.path, offset, size - offset)
      return { bytes, offset, nextOffset: offset + bytes.byteLength, ended }
    })
  }

  /**
   * The log from `options` on, then what is appended, as it is appended, until the log ends or is removed or `signal` aborts.
   * Every follower reads at its own pace from the file, so a slow one holds no memory.
   */
  async *follow(key: RunKey, options: ReadOptions & { signal?: AbortSignal } = {}): AsyncGenerator<Buffer, void, undefined> {
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
      let at = await this.#start(entry, size, options)
      while (!signal?.aborted && entry.generation === generation) {
        changed = false
        const now = entry.state
        if (now !== undefined && at < now.size) {
          const bytes = await readRange(entry.path, at, Math.min(readBytes, now.size - at))
          if (bytes.byteLength === 0) return
          at += bytes.byteLength
          yield bytes
          continue
        }
        if (now?.ended) return
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

  /** Deletes a Run's log; its followers end. */
  async remove(key: RunKey): Promise<void> {
    await this.#use(key, entry => this.#delete(entry))
  }

  async stats(): Promise<LogStats> {
    await this.#scanned
    return { runs: this.#sizes.size, bytes: this.#totalBytes, droppedLogs: this.#droppedLogs, followers: this.#followers }
  }

  /** Ends all followers and waits for what is being written. */
  async close(): Promise<void> {
    const entries = [...this.#entries.values()]
    for (const entry of entries) {
      entry.generation++
      notifyAll(entry)
    }
    await Promise.all(entries.map(({ queue }) => queue))
    await Promise.allSettled([this.#scanned, this.#sweeping])
  }

  #entry(key: RunKey): Entry {
    return this.#entryAt(logPath(this.#directory, key))
  }

  #entryAt(path: string): Entry {
    let entry = this.#entries.get(path)
    if (entry === undefined) {
      entry = { path, state: undefined, queue: Promise.resolve(), users: 0, followers: new Set(), generation: 0 }
      this.#entries.set(path, entry)
    }
    return entry
  }

  async #use<T>(key: RunKey, work: (entry: Entry) => Promise<T>): Promise<T> {
    const entry = this.#entry(key)
    entry.users++
    try {
      return await this.#inOrder(entry, () => work(entry))
    } finally {
      this.#release(entry)
    }
  }

  #inOrder<T>(entry: Entry, work: () => Promise<T>): Promise<T> {
    const done = entry.queue.then(work)
    entry.queue = done.catch(() => undefined)
    return done
  }

  #release(entry: Entry): void {
    entry.users--
    if (this.#entries.size <= maxIdleEntries) return
    for (const [path, { users }] of this.#entries) if (users === 0) this.#entries.delete(path)
  }

  async #load(entry: Entry): Promise<LogState> {
    entry.state ??= await recover(entry.path, this.limits)
    return entry.state
  }

  async #write(entry: Entry, before: LogState, after: LogState, output: Buffer): Promise<void> {
    // Known of from here on, whatever becomes of the write.
    if (!this.#sizes.has(entry.path)) this.#account(entry.path, before.size)
    await mkdir(dirname(entry.path), { recursive: true, mode: 0o700 })
    // The intent first: whichever of the two the log's size then fits is what happened (see `recover`).
    await writeAt(`${entry.path}.meta`, 0, Buffer.from(JSON.stringify([before, after]).padEnd(metaBytes)))
    try {
      await writeAt(`${entry.path}.log`, before.size, output)
    } catch (error) {
      // What a full disk let through must not outlast the next, shorter append.
      await truncate(`${entry.path}.log`, before.size).catch(() => undefined)
      throw error
    }
    entry.state = after
    this.#account(entry.path, after.size)
    notifyAll(entry)
  }

  #account(path: string, size: number | undefined): void {
    this.#totalBytes += (size ?? 0) - (this.#sizes.get(path) ?? 0)
    if (size === undefined) this.#sizes.delete(path)
    else this.#sizes.set(path, size)
  }

  async #delete(entry: Entry): Promise<void> {
    await this.#scanned
    // Most Runs of a large fleet that are deleted never logged here.
    if (this.#sizes.has(entry.path)) {
      await rm(`${entry.path}.log`, { force: true })
      await rm(`${entry.path}.meta`, { force: true })
      await rmdir(dirname(entry.path)).catch(() => undefined)
      this.#account(entry.path, undefined)
    }
    entry.state = emptyLog
    entry.generation++
    notifyAll(entry)
  }

  async #start(entry: Entry, size: number, { offset = 0, tailLines }: ReadOptions): Promise<number> {
    if (tailLines === undefined) return Math.min(Math.max(0, offset), size)
    if (tailLines === 0) return size
    let missing = tailLines
    for (let end = size; end > 0; ) {
      const begin = Math.max(0, end - readBytes)
      const bytes = await readRange(entry.path, begin, end - begin)
      for (let at = bytes.byteLength - 1; at >= 0; at--) {
        // The newline at the very end closes the last line and does not begin another.
        if (bytes[at] !== 10 || begin + at === size - 1) continue
        if (--missing <= 0) return begin + at + 1
      }
      end = begin
    }
    return 0
  }

  async #scan(): Promise<void> {
    for (const namespace of await readdir(this.#directory, { withFileTypes: true })) {
      if (!namespace.isDirectory()) continue
      const directory = join(this.#directory, namespace.name)
      for (const name of await readdir(directory).catch(() => [])) {
        const path = join(directory, name.replace(/\.(log|meta)$/, ''))
        if (this.#sizes.has(path)) continue
        const { size } = await stat(`${path}.log`).catch(() => ({ size: 0 }))
        if (!this.#sizes.has(path)) this.#account(path, size)
      }
    }
  }

  /** Invariant 10: over all logs. Appends wait for it, so that what comes in cannot outrun what goes out. */
  async #sweep(): Promise<void> {
    await this.#scanned
    if (!this.#isOver(1) || this.#nowMs() < this.#nextSweepMs) return
    this.#sweeping ??= this.#dropOldest().finally(() => {
      this.#sweeping = undefined
      // All that is left is in use: looking again at every append would not help.
      if (this.#isOver(1)) this.#nextSweepMs = this.#nowMs() + 10_000
    })
    await this.#sweeping
  }

  #isOver(share: number): boolean {
    const { totalBytes, retainedRuns } = this.limits
    return this.#totalBytes > totalBytes * share || this.#sizes.size > Math.floor(retainedRuns * share)
  }

  async #dropOldest(): Promise<void> {
    const logs = await Promise.all(
      [...this.#sizes.keys()].map(async path => ({ path, mtimeMs: (await stat(`${path}.meta`).catch(() => ({ mtimeMs: 0 }))).mtimeMs })),
    )
    logs.sort((a, b) => a.mtimeMs - b.mtimeMs)
    for (const onlyEnded of [true, false]) {
      for (const { path, mtimeMs } of logs) {
        // Some room beyond the limit, or every append at the limit would look at every log.
        if (!this.#isOver(0.9)) return
        if (!this.#sizes.has(path)) continue
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

/** Opens the logs below `directory`, which is made if absent. Logs that did not end when the process died go on. */
export function openLogStore(options: { directory: string; limits?: Partial<LogLimits>; nowMs?: () => number }): LogStore {
  return new LogStore(options.directory, { ...defaultLogLimits, ...options.limits }, options.nowMs ?? Date.now)
}

function notifyAll(entry: Entry): void {
  for (const notify of entry.followers) notify()
}

/**
 * Where a log stands on disk. The meta file names the state before and after the last append; the log's size says whether it happened.
 * An append that was cut off is taken back, and its sender, who has no answer, sends it again.
 */
async function recover(path: string, limits: LogLimits): Promise<LogState> {
  const size = await stat(`${path}.log`).then(
    info => info.size,
    () => undefined,
  )
  const meta = await readFile(`${path}.meta`, 'utf8').catch(() => undefined)
  if (meta === undefined) return size === undefined ? emptyLog : { ...emptyLog, received: size, size }
  let states: [LogState, LogState]
  try {
    states = JSON.parse(meta) as [LogState, LogState]
  } catch {
    // A power cut in the middle of it: what is stored stays, counted as received.
    return { ...emptyLog, received: size ?? 0, size: size ?? 0 }
  }
  const [before, after] = states
  const stored = size ?? 0
  if (stored === after.size) return after
  if (stored >= before.size) {
    await truncate(`${path}.log`, before.size)
    return before
  }
  const mark = Buffer.from('\n[oarlock] a part of this log was lost when the machine stopped\n')
  const state = { ...before, size: stored + mark.byteLength, lineBytes: 0, cutBytes: 0 }
  if (stored + mark.byteLength > limits.bytesPerRun + metaBytes) return { ...before, size: stored }
  await writeAt(`${path}.log`, stored, mark)
  await writeAt(`${path}.meta`, 0, Buffer.from(JSON.stringify([state, state]).padEnd(metaBytes)))
  return state
}

/** Writes without truncating: a kill in between leaves the old bytes or the new ones. */
async function writeAt(path: string, position: number, bytes: Buffer): Promise<void> {
  const file = await open(path, 'r+').catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return await open(path, 'wx+', 0o600)
  })
  try {
    for (let done = 0; done < bytes.byteLength; ) {
      const { bytesWritten } = await file.write(bytes, done, bytes.byteLength - done, position + done)
      done += bytesWritten
    }
  } finally {
    await file.close()
  }
}

async function readRange(path: string, position: number, length: number): Promise<Buffer> {
  if (length <= 0) return Buffer.alloc(0)
  const file = await open(`${path}.log`, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (file === undefined) return Buffer.alloc(0)
  try {
    const buffer = Buffer.allocUnsafe(length)
    let done = 0
    while (done < length) {
      const { bytesRead } = await file.read(buffer, done, length - done, position + done)
      if (bytesRead === 0) break
      done += bytesRead
    }
    return buffer.subarray(0, done)
  } finally {
    await file.close()
  }
}
