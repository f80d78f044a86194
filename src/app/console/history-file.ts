import { appendFileSync, closeSync, fstatSync, openSync, readSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { History, type HistoryEntry } from '../../console/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'

/** Beyond this the file is written again, with what the history keeps: a day of samples is 0.7 MB with one pool and 14 MB with 60, which takes 70 ms. */
const maxAppendedBytes = 1024 * 1024
/** Of a larger file only the newest part is read. */
const defaultMaxReadBytes = 64 * 1024 * 1024
/** After a write that failed, such as on a full disk, the whole file is written again once in so many entries. */
const retryEntries = 6

export type HistoryFileOptions = {
  readonly log: Log
  /** Milliseconds since the epoch. Default: now. */
  readonly nowMs?: number
  /** Default 64 MiB. */
  readonly maxReadBytes?: number
}

/**
 * The history of the console in a file, a line of JSON for each entry, so that a restart does not begin it again. It is not synced: after a power failure its last lines may
 * be missing or damaged. Damaged lines are left out, and the file that had them is kept as `PATH.damaged`, in place of an earlier one. If the file cannot be written, the history
 * continues in memory, and is written as a whole when it can be. Each of these is logged once.
 */
export class HistoryFile {
  readonly history = new History()
  readonly #path: string
  readonly #log: Log
  #appendedBytes = 0
  /** Entries since a write failed; undefined: the last one succeeded. */
  #unstored: number | undefined

  /** Reads what the file has of the time that a history keeps. */
  constructor(path: string, { log, nowMs = Date.now(), maxReadBytes = defaultMaxReadBytes }: HistoryFileOptions) {
    this.#path = path
    this.#log = log
    const isDamaged = this.#read(nowMs, maxReadBytes)
    if (isDamaged) this.#keepDamaged()
    this.#compact()
  }

  add(entry: HistoryEntry): void {
    this.history.add(entry)
    if (this.#unstored !== undefined) {
      this.#unstored += 1
      if (this.#unstored % retryEntries === 0) this.#compact()
      return
    }
    const line = `${JSON.stringify(entry)}\n`
    this.#appendedBytes += line.length
    if (this.#appendedBytes > maxAppendedBytes) this.#compact()
    else this.#write(() => appendFileSync(this.#path, line, { mode: 0o600 }))
  }

  /** Returns whether the file has something that cannot be read. */
  #read(nowMs: number, maxBytes: number): boolean {
    const [path, log] = [this.#path, this.#log]
    try {
      const { text, bytes } = readEnd(path, maxBytes)
      if (bytes > maxBytes)
        log.warn({ path, bytes }, `the history of the console is larger than ${maxBytes} bytes: only its newest part is kept`)
      let damaged = 0
      for (const line of text.split('\n')) {
        if (line === '') continue
        const entry = readEntry(line)
        if (!entry) damaged += 1
        else if (entry.atMs > nowMs - History.keptMs && entry.atMs <= nowMs) this.history.add(entry)
      }
      if (damaged > 0) log.warn({ path, damaged }, 'the history of the console has damaged lines, which are left out')
      return damaged > 0
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
      log.warn({ err: error, path }, 'the history of the console cannot be read: charts begin again')
      return true
    }
  }

  #keepDamaged(): void {
    const kept = `${this.#path}.damaged`
    try {
      renameSync(this.#path, kept)
      this.#log.warn({ path: kept }, 'the damaged history of the console is kept here')
    } catch (error) {
      this.#log.warn({ err: error, path: this.#path }, 'the damaged history of the console cannot be kept')
    }
  }

  #compact(): void {
    this.#appendedBytes = 0
    const temporary = `${this.#path}.new`
    this.#write(() => {
      try {
        writeFileSync(temporary, [...this.history.entries()].map(entry => `${JSON.stringify(entry)}\n`).join(''), { mode: 0o600 })
        renameSync(temporary, this.#path)
      } catch (error) {
        // A part of it would keep a full disk full.
        rmSync(temporary, { force: true })
        throw error
      }
    })
  }

  #write(write: () => void): void {
    try {
      write()
      if (this.#unstored !== undefined) this.#log.info({ path: this.#path }, 'the history of the console is stored again')
      this.#unstored = undefined
    } catch (error) {
      if (this.#unstored === undefined)
        this.#log.warn(
          { err: error, path: this.#path },
          'the history of the console is not stored: without it, charts begin again at the next start',
        )
      this.#unstored ??= 0
    }
  }
}

/** The last `maxBytes` of a file, from the beginning of a line, and how many it has. */
function readEnd(path: string, maxBytes: number): { readonly text: string; readonly bytes: number } {
  const file = openSync(path, 'r')
  try {
    const { size: bytes } = fstatSync(file)
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
  if (isRecord(values) && Object.values(values).every(value => typeof value === 'number'))
    return { atMs, values: values as Record<string, number> }
  if (isRecord(scaling) && typeof scaling.pool === 'string')
    return { atMs, scaling: scaling as HistoryEntry extends { scaling: infer S } ? S : never }
  return undefined
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
