import type { DatabaseSync } from 'node:sqlite'
import { checksumSeed, rowChecksum } from './checksum.ts'
import type { Row } from './protocol.ts'
import { sqliteCode, sqliteCorrupt, sqliteIoError } from './sqlite-codes.ts'

/** Rows that cannot be read: one with a wrong checksum, or all rows on unreadable pages (`rows` is undefined when their number is unknown). */
export type Corruption = { readonly what: string; readonly rows: number | undefined }

export type RowOrCorruption = { readonly row: Row } | { readonly corruption: Corruption }

type StoredRow = [id: number, resource: string, key: string, revision: number, text: string, checksum: number | null]

/** How many ids are probed one by one after an unreadable page; takes a few seconds. */
const maxProbedIds = 1_000_000

/**
 * Yields every intact row in id order, and every corruption in its position. Reading continues after a corrupt page: rows are looked
 * up by id, on a path through the B-tree that may avoid the page.
 * @param format of the database: format 1 has no checksums.
 */
export function* readRows(db: DatabaseSync, format: number): Generator<RowOrCorruption> {
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
        yield check(stored, seeds)
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
      if (found) yield check(found, seeds)
    }
  }
}

function check(stored: StoredRow, seeds: Map<string, number>): RowOrCorruption {
  const [id, resource, key, revision, text, checksum] = stored
  if (checksum !== null) {
    let seed = seeds.get(resource)
    if (seed === undefined) {
      seed = checksumSeed(resource)
      seeds.set(resource, seed)
    }
    if (rowChecksum(seed, text) !== checksum) {
      return { corruption: { what: `${resource} ${key} (row ${id}) has a wrong checksum`, rows: 1 } }
    }
  }
  return { row: [id, resource, key, revision, text] }
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
