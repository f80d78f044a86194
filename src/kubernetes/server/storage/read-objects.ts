import type { KubeObject } from '../../object/index.ts'
import { toStartError } from './database.ts'
import { readFormat } from './format.ts'
import { DatabaseSync } from './sqlite.ts'
import { validRows } from './valid-rows.ts'

/**
 * Yields the objects of `resource` (its plural, with its group unless that is the core group) in a database that no server has open. Without those that are
 * encrypted or corrupt: `inspect` counts them.
 */
export function* readObjects(file: string, resource: string): Generator<KubeObject, void, undefined> {
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(file, { timeout: 250, readOnly: true })
    for (const { row, object } of validRows(db, readFormat(db), undefined, { onCorruption: () => {}, onLocked: () => {} })) {
      if (row[1] === resource) yield object
    }
  } catch (error) {
    throw toStartError(error, file)
  } finally {
    db?.close()
  }
}
