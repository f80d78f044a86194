import { equal, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { backUpDatabase } from './back-up-database.ts'

test('copies beside continuous commits succeed, and have every commit before them', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-back-up-'))
  const db = new DatabaseSync(join(directory, 'a.db'))
  db.exec('PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; CREATE TABLE t (a)')
  try {
    let commits = 0
    for (let round = 0; round < 40; round++) {
      const before = commits
      const path = join(directory, `copy-${round}`)
      let isDone = false
      const copied = backUpDatabase(db, path).finally(() => {
        isDone = true
      })
      // Bounded: on a loaded machine a larger database would take longer to copy, and grow meanwhile.
      for (let inRound = 0; !isDone; inRound++) {
        await nextTurn()
        if (inRound >= 200) continue
        db.exec('BEGIN')
        for (let row = 0; row < 20; row++) db.exec('INSERT INTO t VALUES (hex(randomblob(100)))')
        db.exec('COMMIT')
        commits++
      }
      await copied
      const copy = new DatabaseSync(path)
      const { rows } = copy.prepare('SELECT count(*) AS rows FROM t').get() as { rows: number }
      copy.close()
      ok(rows >= before * 20, `${rows} rows of ${before * 20}`)
      equal(rows % 20, 0)
    }
  } finally {
    db.close()
    rmSync(directory, { recursive: true })
  }
})
