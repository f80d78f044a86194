import { appendFileSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { History, type HistoryEntry } from '../../console/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'

/** Beyond this the file is written again, with what the history keeps: a day of samples is 0.7 MB with one pool and 14 MB with 60, which takes 70 ms. */
const maxAppendedBytes = 1024 * 1024
/** A larger file is not one of ours. */
const maxFileBytes = 64 * 1024 * 1024

/**
 * The history of the console in a file, a line of JSON for each entry, so that a restart does not begin it again. It is not synced: after a power failure its last lines may
 * be missing or damaged, and such lines are left out. If the file cannot be written, the history continues in memory.
 */
export class HistoryFile {
  readonly history = new History()
  readonly #path: string
  readonly #log: Log
  #appendedBytes = 0
  #isFailing = false

  /** Reads what the file has of the time that a history keeps. */
  constructor(path: string, { log, nowMs = Date.now() }: { readonly log: Log; readonly nowMs?: number }) {
    this.#path = path
    this.#log = log
    for (const entry of readEntries(path, log)) if (entry.atMs > nowMs - History.keptMs && entry.atMs <= nowMs) this.history.add(entry)
    this.#compact()
  }

  add(entry: HistoryEntry): void {
    this.history.add(entry)
    const line = `${JSON.stringify(entry)}\n`
    this.#appendedBytes += line.length
    if (this.#appendedBytes > maxAppendedBytes) this.#compact()
    else this.#write(() => appendFileSync(this.#path, line, { mode: 0o600 }))
  }

  #compact(): void {
    this.#appendedBytes = 0
    const temporary = `${this.#path}.new`
    this.#write(() => {
      writeFileSync(temporary, [...this.history.entries()].map(entry => `${JSON.stringify(entry)}\n`).join(''), { mode: 0o600 })
      renameSync(temporary, this.#path)
    })
  }

  #write(write: () => void): void {
    try {
      write()
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing)
        this.#log.warn({ err: error, path: this.#path }, 'the history of the console is not stored: charts begin again at the next start')
      this.#isFailing = true
    }
  }
}

function readEntries(path: string, log: Log): HistoryEntry[] {
  try {
    if (statSync(path).size > maxFileBytes) return []
    return readFileSync(path, 'utf8')
      .split('\n')
      .map(readEntry)
      .filter(entry => entry !== undefined)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') log.warn({ err: error, path }, 'the history of the console cannot be read')
    return []
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
