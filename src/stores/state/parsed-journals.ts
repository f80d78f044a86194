import { type JournalEntry, parseJournalEntry, type RawJournalEntry, type UnreadableEntry } from '../pulumi/index.ts'
import type { Journal } from './journal-table.ts'

type Entries = (JournalEntry | UnreadableEntry)[]
type Parsed = { readonly journal: string; readonly bytes: number; readonly entries: Entries }

/**
 * The parsed entries of open journals, as they are stored: what they result in is found without decrypting and parsing them again. Of 1,000 resources (6.7 MB) that is
 * two thirds of the work. Bounded by the bytes of the entries; the journal that was used least recently is dropped first. What is in memory is never
 * more than what is stored: after a transaction that failed, {@link clear} it.
 */
export class ParsedJournals {
  readonly #maxBytes: number
  readonly #byStack = new Map<string, Parsed>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** All entries of `journal`, in the order of their arrival; undefined if they are not in memory. */
  get(stackUid: string, journal: Journal): Readonly<Entries> | undefined {
    return this.#find(stackUid, journal)
  }

  set(stackUid: string, journal: Journal, entries: Readonly<Entries>): void {
    this.#put(stackUid, { journal: nameOf(journal), bytes: journal.bytes, entries: [...entries] })
  }

  /** `added` has been stored: the journal `before` is `after` now. */
  append(stackUid: string, before: Journal, after: Journal, added: readonly RawJournalEntry[]): void {
    const entries = before.entries === 0 ? [] : this.#find(stackUid, before)
    if (!entries || after.bytes > this.#maxBytes) {
      this.delete(stackUid)
      return
    }
    for (const { value } of added) entries.push(parseJournalEntry(value))
    this.#put(stackUid, { journal: nameOf(after), bytes: after.bytes, entries })
  }

  delete(stackUid: string): void {
    this.#bytes -= this.#byStack.get(stackUid)?.bytes ?? 0
    this.#byStack.delete(stackUid)
  }

  clear(): void {
    this.#byStack.clear()
    this.#bytes = 0
  }

  #find(stackUid: string, journal: Journal): Entries | undefined {
    const parsed = this.#byStack.get(stackUid)
    if (parsed?.journal !== nameOf(journal) || parsed.entries.length !== journal.entries) return undefined
    this.#byStack.delete(stackUid)
    this.#byStack.set(stackUid, parsed)
    return parsed.entries
  }

  #put(stackUid: string, parsed: Parsed): void {
    this.delete(stackUid)
    this.#byStack.set(stackUid, parsed)
    this.#bytes += parsed.bytes
    for (const [oldest] of this.#byStack) {
      if (this.#bytes <= this.#maxBytes) break
      this.delete(oldest)
    }
  }
}

const nameOf = ({ epoch, runName, update, version }: Journal): string => `${epoch}/${runName}/${update}/${version}`
