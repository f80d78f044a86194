import type { RawJournalEntry } from '../pulumi/index.ts'
import type { JournalPosition } from './decide-journal.ts'
import type { Encryption } from './encryption.ts'
import type { StateFile } from './state-file.ts'

/**
 * The journal of a Stack. Invariants: a Stack has at most one; its entries are stored while it is open, and deleted in the transaction that stores
 * what they result in; each sequence id has one entry. `version` is the number of this result, reserved when the journal began; `baseVersion` is the newest version of kind `pulumi`
 * until then, which no limit deletes.
 */
export type Journal = JournalPosition & {
  readonly version: number
  /** 0 if the update began without a state. */
  readonly baseVersion: number
  /** Version of the CLI; '' if its worker has not sent it. */
  readonly cliVersion: string
  readonly entries: number
  /** Uncompressed. */
  readonly bytes: number
  /** When the last entry was stored. */
  readonly changedMs: number
}

type Row = {
  epoch: number
  run_name: string
  update_number: number
  is_open: number
  version: number
  base_version: number
  cli_version: string
  entries: number
  bytes: number
  changed_ms: number
}

/**
 * The tables of journals, of the digests of their entries, and of batches of entries, which are compressed and encrypted together: 100 entries of
 * 3.3 KB are compressed in 0.07 ms of CPU, and one by one in 4.5 ms.
 */
export class JournalTable {
  readonly #file: StateFile
  readonly #encryption: Encryption
  #openCount: number | undefined

  constructor(file: StateFile, encryption: Encryption) {
    this.#file = file
    this.#encryption = encryption
  }

  get(stackUid: string): Journal | undefined {
    const row = this.#file.sql('SELECT * FROM journal WHERE stack_uid = ?').get(stackUid) as Row | undefined
    return (
      row && {
        ...{ epoch: row.epoch, runName: row.run_name, update: row.update_number, isOpen: row.is_open === 1, version: row.version },
        ...{
          baseVersion: row.base_version,
          cliVersion: row.cli_version,
          entries: row.entries,
          bytes: row.bytes,
          changedMs: row.changed_ms,
        },
      }
    )
  }

  /** The journal, if it is open. */
  open(stackUid: string): Journal | undefined {
    const journal = this.get(stackUid)
    return journal?.isOpen ? journal : undefined
  }

  /** How many journals are open. Counted again only after one may have been opened or closed. */
  get openCount(): number {
    this.#openCount ??= (this.#file.sql('SELECT count(*) count FROM journal WHERE is_open = 1').get() as { count: number }).count
    return this.#openCount
  }

  /** Counts again: the rows may have changed otherwise. */
  forgetCount(): void {
    this.#openCount = undefined
  }

  set(stackUid: string, journal: Journal): void {
    // A journal that has entries is open already.
    if (!journal.isOpen || this.open(stackUid) === undefined) this.forgetCount()
    this.#file
      .sql('INSERT OR REPLACE INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
      .run(
        ...[stackUid, journal.epoch, journal.runName, journal.update, journal.isOpen ? 1 : 0, journal.version, journal.baseVersion],
        ...[journal.cliVersion, journal.entries, journal.bytes, journal.changedMs],
      )
  }

  /** True if the entry is stored, false if none has its sequence id, `conflict` if another one has. */
  has(stackUid: string, { sequenceId, text }: RawJournalEntry): boolean | 'conflict' {
    const row = this.#file.sql('SELECT digest FROM journal_digest WHERE stack_uid = ? AND sequence_id = ?').get(stackUid, sequenceId) as
      | { digest: string }
      | undefined
    return row === undefined ? false : row.digest === this.#digest(text) || 'conflict'
  }

  /** Stores entries of which none is stored. `journal` is the journal before. */
  insert(stackUid: string, journal: Journal, entries: readonly RawJournalEntry[]): void {
    if (entries.length === 0) return
    for (const { sequenceId, text } of entries)
      this.#file.sql('INSERT INTO journal_digest VALUES (?, ?, ?)').run(stackUid, sequenceId, this.#digest(text))
    const bytes = Buffer.from(entries.map(({ text }) => text).join(recordSeparator))
    const number = journal.entries
    const encrypted = this.#encryption.encrypt(bytes, rowOf(stackUid, journal, number))
    this.#file.sql('INSERT INTO journal_batch VALUES (?, ?, ?, ?)').run(stackUid, number, bytes.byteLength, encrypted)
  }

  /** The entries of an open journal in the order of their arrival, as they were sent. */
  *texts(stackUid: string, journal: Journal): Generator<string> {
    const rows = this.#file.sql('SELECT number, size, sealed FROM journal_batch WHERE stack_uid = ? ORDER BY number').iterate(stackUid)
    for (const row of rows as Iterable<{ number: number; size: number; sealed: Uint8Array }>) {
      const bytes = this.#encryption.decrypt(row.sealed, rowOf(stackUid, journal, row.number), row.size)
      yield* bytes.toString().split(recordSeparator)
    }
  }

  /** Ends the journal; `version` is where its result is stored. */
  close(stackUid: string, journal: Journal): void {
    this.#file.sql('DELETE FROM journal_digest WHERE stack_uid = ?').run(stackUid)
    this.#file.sql('DELETE FROM journal_batch WHERE stack_uid = ?').run(stackUid)
    this.set(stackUid, { ...journal, isOpen: false, entries: 0, bytes: 0 })
  }

  #digest(text: string): string {
    return this.#encryption.digest(Buffer.from(text))
  }
}

/** It is in no JSON text (RFC 7464). */
const recordSeparator = '\u001e'

/** `number`: how many entries were stored before the batch. */
const rowOf = (stackUid: string, { epoch, update }: Journal, number: number) => [stackUid, 'journal', epoch, update, number] as const
