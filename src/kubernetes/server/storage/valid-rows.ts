import type { DatabaseSync } from 'node:sqlite'
import type { KubeObject } from '../../object/index.ts'
import type { Row } from './protocol.ts'
import { type Corruption, type LockedRow, readRows } from './read-rows.ts'
import type { RowEncryption } from './row-encryption.ts'
import { rowError } from './row-error.ts'

export type InvalidRowHandlers = {
  onCorruption(corruption: Corruption): void
  onLocked(row: LockedRow): void
}

/** Yields every valid row with its object and the name of its encryption key, if it is encrypted; passes the others to the handlers. */
export function* validRows(
  db: DatabaseSync,
  format: number,
  encryption: RowEncryption | undefined,
  { onCorruption, onLocked }: InvalidRowHandlers,
): Generator<{ row: Row; object: KubeObject; keyName: string | undefined }> {
  const seen = new Map<string, Set<string>>()
  for (const read of readRows(db, format, encryption)) {
    if ('corruption' in read) {
      onCorruption(read.corruption)
      continue
    }
    if ('locked' in read) {
      onLocked(read.locked)
      continue
    }
    const { row, keyName } = read
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
      yield { row, object, keyName }
    }
  }
}
