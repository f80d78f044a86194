import type { Reservation, UnsavedEntry } from './deferred-writes.ts'
import type { StoredEntry } from './entry.ts'
import type { CommitBatch, Row, RowsBatch } from './protocol.ts'
import type { Table } from './table.ts'
import type { Write } from './write-queue.ts'

/**
 * The column form of one commit: `saved`, versions that were acknowledged before, then the writes that are not deferred.
 * See {@link CommitBatch}.
 */
export function toCommitBatch(
  writes: readonly Write[],
  saved: readonly UnsavedEntry[] = [],
  reservations: readonly Reservation[] = [],
): CommitBatch {
  const resources: string[] = []
  const numbers: number[] = []
  const keys: string[] = []
  const texts: string[] = []
  const add = (table: Table, { id, revision }: StoredEntry, key: string, text: string) => {
    let resource = resources.lastIndexOf(table.name)
    if (resource < 0) resource = resources.push(table.name) - 1
    numbers.push(id, revision, resource)
    keys.push(key)
    texts.push(text)
  }
  for (const { table, entry } of saved) add(table, entry, '', entry.text)
  for (const { table, after, last, isNew, isDeferred } of writes) {
    if (!isDeferred) add(table, last, after && isNew ? last.key : '', after ? after.text : '')
  }
  return {
    type: 'commit',
    resources,
    numbers: new Float64Array(numbers),
    keys,
    texts,
    reservations: reservations.map(([{ name }, revision]) => [name, revision]),
  }
}

/** The column form of rows read at startup. */
export function toRowsBatch(rows: readonly Row[]): RowsBatch {
  const resources: string[] = []
  const numbers = new Float64Array(rows.length * 3)
  const keys = new Array<string>(rows.length)
  const texts = new Array<string>(rows.length)
  for (const [i, [id, name, key, revision, text]] of rows.entries()) {
    let resource = resources.lastIndexOf(name)
    if (resource < 0) resource = resources.push(name) - 1
    numbers[3 * i] = id
    numbers[3 * i + 1] = revision
    numbers[3 * i + 2] = resource
    keys[i] = key
    texts[i] = text
  }
  return { type: 'rows', resources, numbers, keys, texts }
}

/** Row `i` of a batch. */
export function rowAt({ resources, numbers, keys, texts }: RowsBatch, i: number): Row {
  return [numbers[3 * i]!, resources[numbers[3 * i + 2]!]!, keys[i]!, numbers[3 * i + 1]!, texts[i]!]
}
