import type { DatabaseSync } from 'node:sqlite'
import type { KubeObject } from '../../object/index.ts'
import type { Row } from './protocol.ts'
import { type Corruption, readRows } from './read-rows.ts'
import { rowError } from './row-error.ts'

/** Yields every valid row with its object; passes the others to `onCorruption`. */
export function* validRows(
  db: DatabaseSync,
  format: number,
  onCorruption: (corruption: Corruption) => void,
): Generator<{ row: Row; object: KubeObject }> {
  const seen = new Map<string, Set<string>>()
  for (const read of readRows(db, format)) {
    if ('corruption' in read) {
      onCorruption(read.corruption)
      continue
    }
    const { row } = read
    const [id, resource, key, , text] = row
    let object: KubeObject
    try {
      object = JSON.parse(text) as KubeObject
    } catch (error) {
      onCorruption({ what: `${resource} ${key} (row ${id}) cannot be read (${(error as Error).message})`, rows: 1 })
      continue
    }
    const keys = seen.get(resource) ?? new Set()
    seen.set(resource, keys)
    const error = rowError(row, object) ?? (keys.has(key) ? `${resource} ${key} (row ${id}) is stored twice` : undefined)
    if (error) onCorruption({ what: error, rows: 1 })
    else {
      keys.add(key)
      yield { row, object }
    }
  }
}
