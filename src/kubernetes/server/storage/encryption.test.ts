/** Secrets at rest: what a copy of the database reveals, and what happens to rows and keys that do not fit. */
import assert from 'node:assert/strict'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { mountTmpfs, tmpfsUnavailable } from '../../../../test/support/mount-tmpfs.ts'
import {
  filesWith,
  makeClearDatabase,
  passwordsOf,
  putSecret,
  secret,
  withDatabase,
  withDirectories,
  withStore,
} from './encryption.testing.ts'
import { encryptionConfigPath } from './encryption-config.ts'
import { restoreBackup, Store } from './index.ts'

test('no value of a Secret is in the database or its log: new, changed and deleted ones; other kinds are in clear text', async () => {
  await withDirectories(1, async dataDir => {
    await withStore(dataDir!, async store => {
      await putSecret(store, 'a', 'first-value')
      await putSecret(store, 'a', 'second-value')
      await putSecret(store, 'b', 'third-value')
      const secrets = store.table('secrets')
      await store.remove(secrets, store.head(secrets, 'default/b')!, secret('b', 'third-value'))
      await store.put(store.table('configmaps'), undefined, { ...secret('c', 'clear-value'), kind: 'ConfigMap' })
      for (const value of ['first-value', 'second-value', 'third-value']) assert.deepEqual(filesWith(dataDir!, value), [], value)
      assert.notDeepEqual(filesWith(dataDir!, 'clear-value'), [], 'the search finds what is there')
    })
    assert.deepEqual(filesWith(dataDir!, 'second-value'), [], 'after the log was written to the database')
    assert.deepEqual(filesWith(dataDir!, 'clear-value'), ['oarlock.db'])
    assert.deepEqual(await withStore(dataDir!, passwordsOf), { a: 'second-value' })
    assert.equal(statSync(encryptionConfigPath(dataDir!)).mode & 0o777, 0o600)
  })
})

test('rows cannot be exchanged: the ciphertext is bound to the key of its object', async () => {
  await withDirectories(1, async dataDir => {
    await withStore(dataDir!, async store => {
      await putSecret(store, 'a', 'one')
      await putSecret(store, 'b', 'two')
    })
    withDatabase(dataDir!, db => {
      const rows = db.prepare('SELECT id, value, checksum FROM object ORDER BY id').all()
      const update = db.prepare('UPDATE object SET value = ?, checksum = ? WHERE id = ?')
      update.run(rows[0]!.value!, rows[0]!.checksum!, rows[1]!.id!)
    })
    await assert.rejects(Store.open({ dataDir: dataDir! }), {
      code: 'DataCorrupt',
      message: /secrets default\/b \(row 2\) cannot be decrypted with the key key-\w+: it is corrupt, or belongs to another object/,
    })
  })
})

test('an existing database is encrypted by its first start, and no clear text remains in free pages or in the log', async () => {
  await withDirectories(1, async dataDir => {
    const stored = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`s${i}`, `stored-${i}-${'x'.repeat(500)}`]))
    makeClearDatabase(dataDir!, stored, { gone: `deleted-value-${'y'.repeat(9_000)}` })
    assert.deepEqual(filesWith(dataDir!, 'deleted-value'), ['oarlock.db'], 'the deletion left the value in the file')
    await withStore(dataDir!, store => {
      assert.equal(store.report?.foundFormat, 2)
      assert.deepEqual(passwordsOf(store), stored)
      for (const value of ['stored-', 'deleted-value']) assert.deepEqual(filesWith(dataDir!, value), [], value)
    })
    for (const value of ['stored-', 'deleted-value']) assert.deepEqual(filesWith(dataDir!, value), [], value)
    assert.deepEqual(await withStore(dataDir!, passwordsOf), stored)
  })
})

test('a migration that a full disk interrupts does not prevent the start, and the next start completes it', {
  skip: tmpfsUnavailable(),
}, async () => {
  const disk = mountTmpfs(8 * 1024 * 1024)
  try {
    const stored = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`s${i}`, `stored-${i}-${'x'.repeat(3_000)}`]))
    makeClearDatabase(disk.path, stored, {})
    const ballast = join(disk.path, 'ballast')
    writeFileSync(ballast, Buffer.alloc(5 * 1024 * 1024))
    await withStore(disk.path, store => {
      assert.match(store.report?.reencryptionError ?? '', /full/)
      assert.deepEqual(passwordsOf(store), stored)
    })
    rmSync(ballast)
    await withStore(disk.path, store => {
      assert.equal(store.report?.reencryptionError, undefined)
      assert.deepEqual(passwordsOf(store), stored)
    })
    assert.deepEqual(filesWith(disk.path, 'stored-'), [])
  } finally {
    await disk.unmount()
  }
})

test('without the key nothing starts and nothing is changed; --salvage keeps the objects that are not encrypted', async () => {
  await withDirectories(2, async (dataDir, elsewhere) => {
    await withStore(dataDir!, async store => {
      await putSecret(store, 'a', 'one')
      await store.put(store.table('configmaps'), undefined, { ...secret('c', 'clear'), kind: 'ConfigMap' })
    })
    const path = encryptionConfigPath(dataDir!)
    const config = readFileSync(path)
    const before = readFileSync(join(dataDir!, 'oarlock.db'))
    rmSync(path)
    await assert.rejects(Store.open({ dataDir: dataDir! }), {
      code: 'EncryptionKeyMissing',
      message: /keys\/encryption-config.json is missing/,
    })
    assert.throws(() => readFileSync(path), { code: 'ENOENT' }, 'no new key takes its place')
    await withStore(elsewhere!, () => {})
    writeFileSync(path, readFileSync(encryptionConfigPath(elsewhere!)), { mode: 0o600 })
    await assert.rejects(Store.open({ dataDir: dataDir! }), {
      code: 'EncryptionKeyMissing',
      message: /secrets default\/a in .*oarlock.db is encrypted with the key key-\w+, which is not in .*encryption-config.json/,
    })
    assert.deepEqual(readFileSync(join(dataDir!, 'oarlock.db')), before)
    const salvaged = restoreBackup({ file: join(dataDir!, 'oarlock.db'), dataDir: join(elsewhere!, 'salvaged'), salvage: true })
    const { objects, skipped, skippedObjects } = salvaged
    assert.deepEqual([objects, /^1 object is encrypted with the missing key key-\w+$/.test(skipped ?? '')], [1, true], String(skipped))
    assert.deepEqual(
      [skippedObjects.length, /^secrets default\/a is encrypted with the missing key key-\w+$/.test(skippedObjects[0] ?? '')],
      [1, true],
    )
    writeFileSync(path, config)
    assert.deepEqual(await withStore(dataDir!, passwordsOf), { a: 'one' })
  })
})

test('the configuration decides which resources are encrypted; a change applies to stored objects with the next start', async () => {
  await withDirectories(1, async dataDir => {
    const path = encryptionConfigPath(dataDir!)
    const put = (store: Store) => store.put(store.table('configmaps'), undefined, { ...secret('c', 'map-value'), kind: 'ConfigMap' })
    await withStore(dataDir!, async store => {
      await put(store)
      await putSecret(store, 'a', 'secret-value')
    })
    const configure = (resources: string[]) => {
      const config = JSON.parse(readFileSync(path, 'utf8')) as { resources: { resources: string[] }[] }
      config.resources[0]!.resources = resources
      writeFileSync(path, JSON.stringify(config))
    }
    configure(['secrets', 'configmaps'])
    await withStore(dataDir!, store => assert.equal(store.table('configmaps').size, 1))
    assert.deepEqual([filesWith(dataDir!, 'map-value'), filesWith(dataDir!, 'secret-value')], [[], []])
    configure(['configmaps'])
    await withStore(dataDir!, store => assert.deepEqual(passwordsOf(store), { a: 'secret-value' }))
    assert.deepEqual([filesWith(dataDir!, 'map-value'), filesWith(dataDir!, 'secret-value')], [[], ['oarlock.db']])
  })
})

test('a configuration that would be followed only in part is rejected, without repeating its content', async () => {
  await withDirectories(1, async dataDir => {
    await withStore(dataDir!, () => {})
    const path = encryptionConfigPath(dataDir!)
    const valid = JSON.parse(readFileSync(path, 'utf8')) as {
      resources: [{ resources: string[]; providers: [{ aesgcm: { keys: [{ secret: string }] } }] }]
    }
    const { secret: key } = valid.resources[0].providers[0].aesgcm.keys[0]
    const [{ resources, providers }] = valid.resources
    for (const [change, reason] of [
      [{ ...valid, resources: [...valid.resources, ...valid.resources] }, /resources must be a list of 1 to 1 items/],
      [{ ...valid, resources: [{ resources: ['*.*'], providers }] }, /without wildcards/],
      [{ ...valid, resources: [{ resources, providers: [{ identity: {} }] }] }, /providers\[0\] must be aesgcm/],
      [
        { ...valid, resources: [{ resources, providers: [{ aesgcm: { keys: [{ name: 'k', secret: key.slice(4) }] } }] }] },
        /the secret of key k must be 32 bytes/,
      ],
      [{ ...valid, kind: 'Secret' }, /kind must be EncryptionConfiguration/],
      [`{"kind": "EncryptionConfiguration", "secret": ${key}`, /it is not JSON/],
    ] as const) {
      writeFileSync(path, typeof change === 'string' ? change : JSON.stringify(change))
      await assert.rejects(Store.open({ dataDir: dataDir! }), (error: Error & { code: string }) => {
        assert.deepEqual(
          [error.code, reason.test(error.message), error.message.includes(key.slice(0, 8))],
          ['DataCorrupt', true, false],
          error.message,
        )
        return true
      })
    }
  })
})
