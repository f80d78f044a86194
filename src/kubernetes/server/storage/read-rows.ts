import type { DatabaseSync } from 'node:sqlite'
import { checksumSeed, rowChecksum } from './checksum.ts'
import type { Row } from './protocol.ts'
import { keyNameOf, type RowEncryption } from './row-encryption.ts'
import { sqliteCode, sqliteCorrupt, sqliteIoError } from './sqlite-codes.ts'

/** Rows that cannot be read: one with a wrong checksum, or all rows on unreadable pages (`rows` is undefined when their number is unknown). */
export type Corruption = { readonly what: string; readonly rows: number | undefined }

/** A row whose encryption key is not known. */
export type LockedRow = { readonly resource: string; readonly key: string; readonly revision: number; readonly keyName: string }

/** `keyName` is the encryption key of a row that is stored encrypted. */
export type ReadRow =
  | { readonly row: Row; readonly keyName: string | undefined }
  | { readonly locked: LockedRow }
  | { readonly corruption: Corruption }

type StoredRow = [id: number, resource: string, key: string, revision: number, value: string | Uint8Array, checksum: number | null]

/** How many ids are probed one by one after an unreadable page; takes a few seconds. */
const maxProbedIds = 1_000_000

/**
 * Yields every intact row in id order, and every corruption in its position. Reading continues after a corrupt page: rows are looked
 * up by id, on a path through the B-tree that may avoid the page.
 * @param format of the database: format 1 has no checksums.
 * @param encryption decrypts; without it, every encrypted row is locked.
 */
export function* readRows(db: DatabaseSync, format: number, encryption: RowEncryption | undefined): Generator<ReadRow> {
  const columns = `SELECT id, resource, key, revision, value, ${format < 2 ? 'NULL' : 'checksum'} FROM object`
  const seeds = new Map<string, number>()
  const range = db.prepare(`${columns} WHERE id > ? ORDER BY id`)
  const single = db.prepare(`${columns} WHERE id = ?`)
  range.setReturnArrays(true)
  single.setReturnArrays(true)
  let last = Number.MIN_SAFE_INTEGER
  let probes = 0
  for (;;) {
    try {
      for (const stored of range.iterate(last) as Iterable<unknown> as Iterable<StoredRow>) {
        last = stored[0]
        yield check(stored, seeds, encryption)
      }
      return
    } catch (error) {
      if (!isCorruptionError(error)) throw error
      const reason = (error as Error).message
      // Ids begin at 1, and everything up to `last` has been read.
      const from = Math.max(last, 0) + 1
      const newest = newestId(db) ?? from + maxProbedIds
      let next = from
      let found: StoredRow | undefined
      for (; next <= newest && probes < maxProbedIds; next++, probes++) {
        try {
          found = single.get(next) as unknown as StoredRow | undefined
          break
        } catch (again) {
          if (!isCorruptionError(again)) throw again
        }
      }
      const isEnd = next > newest || probes >= maxProbedIds
      if (next > from || isEnd) {
        const until = isEnd ? 'the end' : `${next - 1}`
        yield { corruption: { what: `rows ${from} to ${until} cannot be read (${reason})`, rows: isEnd ? undefined : next - from } }
      }
      if (isEnd) return
      last = next
      if (found) yield check(found, seeds, encryption)
    }
  }
}

function check(stored: StoredRow, seeds: Map<string, number>, encryption: RowEncryption | undefined): ReadRow {
  const [id, resource, key, revision, value, checksum] = stored
  const corruption = (what: string): ReadRow => ({ corruption: { what: `${resource} ${key} (row ${id}) ${what}`, rows: 1 } })
  if (checksum !== null) {
    let seed = seeds.get(resource)
    if (seed === undefined) {
      seed = checksumSeed(resource)
      seeds.set(resource, seed)
    }
    if (rowChecksum(seed, value) !== checksum) return corruption('has a wrong checksum')
  }
  if (typeof value === 'string') return { row: [id, resource, key, revision, value], keyName: undefined }
  const keyName = keyNameOf(value)
  if (keyName === undefined) return corruption('is neither text nor encrypted')
  if (!encryption?.has(keyName)) return { locked: { resource, key, revision, keyName } }
  try {
    return { row: [id, resource, key, revision, encryption.decrypt(value, resource, key)], keyName }
  } catch {
    return corruption(`cannot be decrypted with the key ${keyName}: it is corrupt, or belongs to another object`)
  }
}

function isCorruptionError(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === sqliteCorrupt || code === sqliteIoError
}

function newestId(db: DatabaseSync): number | undefined {
  try {
    return (db.prepare('SELECT max(id) AS id FROM object').get() as { id: number | null }).id ?? 0
  } catch {
    return undefined
  }
}
