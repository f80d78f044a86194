import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { KubeObject } from '../../object/index.ts'
import { ServerStartError, Store } from './index.ts'

const thing = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name, namespace: 'default', uid: name, resourceVersion: '', creationTimestamp: '' },
  text: 'x'.repeat(900),
})

/** Creates a data directory with `count` things and closes the store. */
async function withThings(count: number, use: (dataDir: string, file: string) => Promise<void>): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-integrity-'))
  try {
    const store = await Store.open({ dataDir, synchronous: 'OFF' })
    const table = store.table('things')
    await Promise.all(Array.from({ length: count }, (_, index) => store.put(table, undefined, thing(`t${index}`))))
    await store.close()
    await use(dataDir, join(dataDir, 'oarlock.db'))
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function openError(dataDir: string): Promise<ServerStartError> {
  try {
    const store = await Store.open({ dataDir })
    await store.close()
  } catch (error) {
    assert.ok(error instanceof ServerStartError, String(error))
    return error
  }
  return assert.fail('the store must not open')
}

function change(file: string, sql: string): void {
  const db = new DatabaseSync(file)
  db.exec(sql)
  db.close()
}

test('a page of noise is detected; the error names the file, the number of readable objects and the remedy', async () => {
  await withThings(400, async (dataDir, file) => {
    const before = readFileSync(file)
    const noise = Buffer.alloc(4096, 0xa5)
    const handle = openSync(file, 'r+')
    writeSync(handle, noise, 0, noise.length, 4096 * 30)
    closeSync(handle)
    const { code, message } = await openError(dataDir)
    assert.equal(code, 'DataCorrupt')
    const [, readable, corrupt] = /(\d+) objects can be read, but (\d+) objects are corrupt: /.exec(message) ?? assert.fail(message)
    assert.equal(Number(readable) + Number(corrupt), 400)
    assert.ok(Number(corrupt) <= 10, message)
    assert.ok(message.includes(file), message)
    assert.match(message, /rows \d+ to \d+ cannot be read/)
    assert.match(message, /oarlock restore BACKUP --data \S+ --force.*oarlock restore \S+ --data NEW_DIRECTORY --salvage/)
    assert.equal(statSync(file).size, before.length, 'nothing was changed')
    assert.ok(
      readFileSync(file)
        .subarray(4096 * 30, 4096 * 31)
        .equals(noise),
    )
  })
})

test('the checksum detects one flipped bit in a string, which is still valid JSON', async () => {
  await withThings(50, async (dataDir, file) => {
    const bytes = readFileSync(file)
    const at = bytes.indexOf('xxxxxxxx', 8192)
    bytes[at] = bytes[at]! ^ 1
    writeFileSync(file, bytes)
    const { code, message } = await openError(dataDir)
    assert.equal(code, 'DataCorrupt')
    assert.match(message, /49 objects can be read, but 1 object is corrupt: things default\/t\d+ \(row \d+\) has a wrong checksum/)
  })
})

for (const { name, sql, expected } of [
  {
    name: 'a text that is not JSON',
    sql: `UPDATE object SET value = '{"meta', checksum = NULL WHERE id = 3`,
    expected: /t2 \(row 3\) cannot be read/,
  },
  {
    name: 'a text that is not an object',
    sql: `UPDATE object SET value = 'null', checksum = NULL WHERE id = 3`,
    expected: /row 3\) has no metadata/,
  },
  {
    name: 'an object under another key',
    sql: `UPDATE object SET key = 'default/other' WHERE id = 3`,
    expected: /contains the object of another key/,
  },
  {
    name: 'a key that is stored twice',
    sql: 'INSERT INTO object SELECT 99, resource, key, revision, value, checksum FROM object WHERE id = 3',
    expected: /is stored twice/,
  },
  {
    name: 'a revision other than in its object',
    sql: 'UPDATE object SET revision = revision + 1 WHERE id = 3',
    expected: /but resourceVersion/,
  },
  { name: 'another resource', sql: `UPDATE object SET resource = 'others' WHERE id = 3`, expected: /has a wrong checksum/ },
]) {
  test(`detects a row with ${name}`, async () => {
    await withThings(10, async (dataDir, file) => {
      change(file, sql)
      const { code, message } = await openError(dataDir)
      assert.equal(code, 'DataCorrupt')
      assert.match(message, expected)
    })
  })
}

test('rejects a file that is truncated or not a database', async () => {
  await withThings(200, async (dataDir, file) => {
    truncateSync(file, 4096 * 7 + 100)
    assert.equal((await openError(dataDir)).code, 'DataCorrupt')
    writeFileSync(file, 'not a database'.repeat(1000))
    const { code, message } = await openError(dataDir)
    assert.equal(code, 'DataCorrupt')
    assert.match(message, /is corrupt \(file is not a database\)/)
  })
})

test('a database missing from a used data directory is an error, and is not replaced by an empty one', async () => {
  await withThings(1, async (dataDir, file) => {
    rmSync(file)
    await (await Store.open({ dataDir })).close()
    writeFileSync(join(dataDir, 'kubeconfig'), '')
    rmSync(file)
    const { code, message } = await openError(dataDir)
    assert.equal(code, 'DataMissing')
    assert.match(message, /oarlock\.db is missing, but \S+kubeconfig shows that a server has run here: .*to start empty/)
    writeFileSync(file, '')
    assert.match((await openError(dataDir)).message, /oarlock\.db is empty/)
    rmSync(join(dataDir, 'kubeconfig'))
    await (await Store.open({ dataDir })).close()
  })
})
