import type { KubeObject } from '../../object/index.ts'
import { clockName } from './cluster-clock.ts'
import { rowAt } from './columns.ts'
import { CorruptionReport } from './corruption-report.ts'
import type { ReadyMessage, RowsBatch } from './protocol.ts'
import { rowError } from './row-error.ts'
import type { Table } from './table.ts'

/** Fills the tables with what the storage thread reads at startup. */
export class TableLoader {
  readonly #tableOf: (name: string) => Table
  readonly #corruption = new CorruptionReport()
  #lastId = 0
  #newestRevision = 0

  constructor(tableOf: (name: string) => Table) {
    this.#tableOf = tableOf
  }

  /** The highest row id. */
  get lastId(): number {
    return this.#lastId
  }

  /** No revision above it was ever assigned to a visible change. */
  get newestRevision(): number {
    return this.#newestRevision
  }

  load(batch: RowsBatch): void {
    for (let i = 0; i < batch.texts.length; i++) {
      const row = rowAt(batch, i)
      const [id, resource, key, revision, text] = row
      this.#lastId = Math.max(this.#lastId, id)
      this.#newestRevision = Math.max(this.#newestRevision, revision)
      try {
        const object = JSON.parse(text) as KubeObject
        const table = this.#tableOf(resource)
        const error = rowError(row, object) ?? (table.get(key) && `${resource} ${key} is stored twice`)
        if (error) this.#corruption.add({ what: error, rows: 1 })
        else table.load(id, object, revision, text)
      } catch (error) {
        this.#corruption.add({ what: `${resource} ${key} (row ${id}) cannot be read (${(error as Error).message})`, rows: 1 })
      }
    }
  }

  /** After the last row: sets from where watches may continue. Returns the corruption that was found. */
  finish({ floor, revisions, reservations, report }: ReadyMessage): CorruptionReport {
    this.#newestRevision = Math.max(this.#newestRevision, floor)
    for (const [resource, revision] of [...revisions, ...reservations]) {
      if (resource !== clockName) this.#tableOf(resource).setFloor(Math.max(revision, floor))
      this.#newestRevision = Math.max(this.#newestRevision, revision)
    }
    for (const corruption of report.corruptions) this.#corruption.add(corruption)
    return this.#corruption
  }
}
