import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { parseEntry, Store, stringifyAsciiJson } from './index.ts'

async function withDirectory(use: (dataDir: string, file: string) => Promise<void>): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-format-'))
  try {
    await use(dataDir, join(dataDir, 'oarlock.db'))
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

const object = (name: string, resourceVersion: string) => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name, uid: name, resourceVersion, creationTimestamp: '' },
})

test('a database of format 1 is migrated, and its rows get checksums with their next write', async () => {
  await withDirectory(async (dataDir, file) => {
    // As the first version created it.
    const old = new DatabaseSync(file)
    old.exec(`PRAGMA journal_mode=WAL;
      CREATE TABLE object (id INTEGER PRIMARY KEY, resource TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, value TEXT NOT NULL);
      CREATE TABLE resource (name TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
      PRAGMA user_version=1`)
    const insert = old.prepare('INSERT INTO object VALUES (?, ?, ?, ?, ?)')
    for (let i = 1; i <= 3; i++) insert.run(i, 'things', `t${i}`, i * 100, stringifyAsciiJson(object(`t${i}`, String(i * 100))))
    old.exec("INSERT INTO resource VALUES ('things', 400)")
    old.close()

    const store = await Store.open({ dataDir })
    const things = store.table('things')
    assert.equal(store.report?.foundFormat, 1)
    assert.deepEqual(
      things.snapshot().map(entry => [entry.key, entry.revision]),
      [
        ['t1', 100],
        ['t2', 200],
        ['t3', 300],
      ],
    )
    assert.equal(things.floor, 400, 'the deletion at revision 400 counts')
    const head = store.head(things, 't2')!
    await store.put(things, head, parseEntry(head))
    await store.close()

    const db = new DatabaseSync(file)
    assert.equal(db.prepare('PRAGMA user_version').get()?.user_version, 4)
    const rows = db.prepare('SELECT key, checksum IS NULL AS isUnchecked FROM object ORDER BY id').all()
    assert.deepEqual(
      rows.map(row => [row.key, row.isUnchecked]),
      [
        ['t1', 1],
        ['t2', 0],
        ['t3', 1],
      ],
    )
    db.close()
    const again = await Store.open({ dataDir })
    assert.equal(again.report?.foundFormat, 4)
    await again.close()
  })
})

test('a large file of mostly free pages is compacted at startup', async () => {
  await withDirectory(async (dataDir, file) => {
    await (await Store.open({ dataDir, synchronous: 'OFF' })).close()
    const db = new DatabaseSync(file)
    db.exec(`CREATE TABLE ballast (value BLOB); PRAGMA synchronous=OFF;
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70) INSERT INTO ballast SELECT zeroblob(1048576) FROM n;
      DROP TABLE ballast`)
    db.close()
    assert.ok(statSync(file).size > 70e6)
    const store = await Store.open({ dataDir, synchronous: 'OFF' })
    assert.ok((store.report?.compactedBytes ?? 0) > 70e6)
    await store.close()
    assert.ok(statSync(file).size < 1e6)
  })
})
