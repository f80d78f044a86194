import { appendFileSync, closeSync, constants, fstatSync, lstatSync, openSync, readSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { History, type HistoryEntry, type Scaling } from '../../console/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import { isJsonObject } from '../../kubernetes/object/index.ts'

/** Beyond this the file is written again, with what the history keeps: a day of samples is 0.7 MB with one pool and 14 MB with 60, which takes 70 ms. */
const maxAppendedBytes = 1024 * 1024
/** Of a larger file only the newest part is read. */
const defaultMaxReadBytes = 64 * 1024 * 1024
/** After a failure, such as on a full disk, every sixth entry tries again: at most once a minute with samples every 10 s. */
const retryEntries = 6
const notStored = 'the history of the console is not stored: charts start empty after a restart'

export type HistoryFileOptions = {
  readonly log: Log
  /** Milliseconds since the epoch. Default: now. */
  readonly nowMs?: number
  /** Default 64 MiB. */
  readonly maxReadBytes?: number
}

/**
 * The history of the console in a file, a line of JSON for each entry, so that charts continue after a restart. It is not synced: after a power failure its last lines may be
 * missing or damaged. Damaged lines are left out, and what is later than the clock, which may be wrong; the file that had them is kept as `PATH.damaged`, in place of an earlier one. A file that cannot be read, or that is
 * damaged and cannot be kept, is not changed. Until it can be read, kept and written, the history continues in memory. Each of these is logged once.
 */
export class HistoryFile {
  readonly history = new History()
  readonly #path: string
  readonly #log: Log
  readonly #maxReadBytes: number
  #isRead = false
  /** The file has what the history does not have. */
  #mustBeKept = false
  #appendedBytes = 0
  /** Why entries are not stored, and how many since; undefined: the last one was stored. */
  #failure: { readonly message: string; entries: number } | undefined

  /** Reads what the file has of the time that a history keeps. */
  constructor(path: string, { log, nowMs = Date.now(), maxReadBytes = defaultMaxReadBytes }: HistoryFileOptions) {
    this.#path = path
    this.#log = log
    this.#maxReadBytes = maxReadBytes
    this.#store(nowMs)
  }

  add(entry: HistoryEntry): void {
    this.history.add(entry)
    if (this.#failure) {
      this.#failure.entries += 1
      if (this.#failure.entries % retryEntries === 0) this.#store(entry.atMs)
      return
    }
    const line = `${JSON.stringify(entry)}\n`
    this.#appendedBytes += line.length
    if (this.#appendedBytes > maxAppendedBytes) this.#store(entry.atMs)
    else this.#attempt(notStored, () => appendFileSync(this.#path, line, { mode: 0o600 }))
  }

  /** Writes the whole file, once what it had is in the history and damaged content is kept. */
  #store(nowMs: number): void {
    const isStored =
      this.#attempt('the history of the console cannot be read: charts start empty, and new values are in memory only', () =>
        this.#read(nowMs),
      ) &&
      this.#attempt('the damaged history of the console cannot be kept: new values are in memory only', () => this.#keepOld()) &&
      this.#attempt(notStored, () => this.#compact())
    if (!isStored || !this.#failure) return
    this.#log.info({ path: this.#path }, 'the history of the console is stored again')
    this.#failure = undefined
  }

  #attempt(message: string, step: () => void): boolean {
    try {
      step()
      return true
    } catch (error) {
      if (this.#failure?.message !== message) {
        this.#log.warn({ err: error, path: this.#path }, message)
        this.#failure = { message, entries: 0 }
      }
      return false
    }
  }

  #read(nowMs: number): void {
    if (this.#isRead) return
    const [path, log, maxBytes] = [this.#path, this.#log, this.#maxReadBytes]
    const { text, bytes } = readEnd(path, maxBytes)
    this.#isRead = true
    if (bytes > maxBytes)
      log.warn({ path, bytes }, `the history of the console is larger than ${maxBytes} bytes: only its newest part is kept`)
    const lines = text.split('\n').filter(line => line !== '')
    const entries = lines.map(readEntry).filter(entry => entry !== undefined)
    this.history.prepend(entries.filter(({ atMs }) => atMs > nowMs - History.keptMs && atMs <= nowMs))
    const damaged = lines.length - entries.length
    const later = entries.filter(({ atMs }) => atMs > nowMs).length
    this.#mustBeKept = damaged + later > 0
    if (damaged > 0) log.warn({ path, damaged }, 'the history of the console has damaged lines, which are left out')
    if (later > 0) log.warn({ path, later }, 'the history of the console has entries that are later than the clock, which are left out')
  }

  #keepOld(): void {
    if (!this.#mustBeKept) return
    const kept = `${this.#path}.damaged`
    renameSync(this.#path, kept)
    this.#mustBeKept = false
    this.#log.warn({ path: kept }, 'the history of the console as it was is kept here')
  }

  #compact(): void {
    this.#appendedBytes = 0
    const temporary = `${this.#path}.new`
    try {
      writeFileSync(temporary, [...this.history.entries()].map(entry => `${JSON.stringify(entry)}\n`).join(''), { mode: 0o600 })
      renameSync(temporary, this.#path)
    } catch (error) {
      // A part of it would keep a full disk full.
      rmSync(temporary, { force: true })
      throw error
    }
  }
}

/** The last `maxBytes` of a file, from the beginning of a line, and how many it has; nothing of a file that does not exist. */
function readEnd(path: string, maxBytes: number): { readonly text: string; readonly bytes: number } {
  if (!lstatSync(path, { throwIfNoEntry: false })) return { text: '', bytes: 0 }
  // A FIFO would block the process until another one writes to it.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const status = fstatSync(file)
    if (!status.isFile()) throw new Error(`${path} is not a regular file: remove it`)
    const bytes = status.size
    const buffer = Buffer.alloc(Math.min(bytes, maxBytes))
    const start = bytes - buffer.length
    let read = 0
    while (read < buffer.length) {
      const more = readSync(file, buffer, read, buffer.length - read, start + read)
      if (more === 0) break
      read += more
    }
    const text = buffer.toString('utf8', 0, read)
    return { text: start === 0 ? text : text.slice(text.indexOf('\n') + 1), bytes }
  } finally {
    closeSync(file)
  }
}

function readEntry(line: string): HistoryEntry | undefined {
  let entry: Partial<{ atMs: unknown; values: unknown; scaling: unknown }>
  try {
    entry = (JSON.parse(line) ?? {}) as typeof entry
  } catch {
    return undefined
  }
  const { atMs, values, scaling } = entry
  if (typeof atMs !== 'number' || !Number.isFinite(atMs)) return undefined
  if (isJsonObject(values) && Object.values(values).every(value => typeof value === 'number'))
    return { atMs, values: values as Record<string, number> }
  return isScaling(scaling) ? { atMs, scaling } : undefined
}

const isScaling = (value: unknown): value is Scaling =>
  isJsonObject(value) &&
  typeof value.pool === 'string' &&
  scalingNumbers.every(name => typeof value[name] === 'number' && Number.isFinite(value[name]))

const scalingNumbers = ['atMs', 'from', 'to', 'min', 'max', 'queued', 'busy'] as const satisfies readonly (keyof Scaling)[]
