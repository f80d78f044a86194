import type { CommitBatch, Row, RowsBatch } from './protocol.ts'
import type { Write } from './write-queue.ts'

/** The column form of the writes of one commit; see {@link CommitBatch}. */
export function toCommitBatch(writes: readonly Write[]): CommitBatch {
  const resources: string[] = []
  const numbers = new Float64Array(writes.length * 3)
  const keys = new Array<string>(writes.length)
  const texts = new Array<string>(writes.length)
  for (const [i, { table, after, last, isNew }] of writes.entries()) {
    let resource = resources.lastIndexOf(table.name)
    if (resource < 0) resource = resources.push(table.name) - 1
    numbers[3 * i] = last.id
    numbers[3 * i + 1] = last.revision
    numbers[3 * i + 2] = resource
    keys[i] = after && isNew ? last.key : ''
    texts[i] = after ? after.text : ''
  }
  return { type: 'commit', resources, numbers, keys, texts }
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
