import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { keyNames, passwordsOf, putSecret, withDatabase, withDirectories, withStore } from './encryption.testing.ts'
import { encryptionConfigPath } from './encryption-config.ts'
import { backUpDataDirectory, restoreBackup, type Store } from './index.ts'
import { keyNameOf } from './row-encryption.ts'

const usedKeys = (dataDir: string) =>
  withDatabase(dataDir, db => [
    ...new Set(
      db
        .prepare('SELECT value FROM object')
        .all()
        .map(({ value }) => keyNameOf(value as Uint8Array)),
    ),
  ])

/** Ciphertext of each row. */
const values = (dataDir: string) =>
  withDatabase(dataDir, db =>
    db
      .prepare('SELECT value FROM object')
      .all()
      .map(({ value }) => Buffer.from(value as Uint8Array).toString('latin1')),
  )

const fill = (store: Store, count: number) => Promise.all(Array.from({ length: count }, (_, i) => putSecret(store, `s${i}`, `value ${i}`)))

test('a rotation re-encrypts everything while writes continue; nothing of the old ciphertext is left', async () => {
  await withDirectories(1, async dataDir => {
    await withStore(dataDir!, store => fill(store, 1_000))
    const old = values(dataDir!)
    const [first] = keyNames(dataDir!)
    const expected = await withStore(dataDir!, async store => {
      let isDone = false
      const writing = (async () => {
        for (let i = 0; !isDone; i++) await putSecret(store, `s${i % 1_000}`, `changed ${i}`)
      })()
      const rotation = await store.rotateEncryptionKey({ removesOldKeys: false })
      isDone = true
      await writing
      assert.deepEqual([rotation.objects, rotation.olderKeys], [1_000, [first]])
      assert.deepEqual(keyNames(dataDir!), [rotation.key, first])
      return passwordsOf(store)
    })
    assert.deepEqual(usedKeys(dataDir!), [keyNames(dataDir!)[0]])
    const file = readFileSync(join(dataDir!, 'oarlock.db'), 'latin1')
    assert.equal(old.filter(value => file.includes(value.slice(-64))).length, 0)
    assert.deepEqual(await withStore(dataDir!, passwordsOf), expected)
  })
})

test('old keys restore earlier backups until they are removed; one task at a time', async () => {
  await withDirectories(3, async (dataDir, elsewhere, other) => {
    const backup = join(elsewhere!, 'a.backup')
    await withStore(dataDir!, store => fill(store, 3))
    const keys = join(elsewhere!, 'keys.json')
    copyFileSync(encryptionConfigPath(dataDir!), keys)
    const [first] = keyNames(dataDir!)
    assert.deepEqual(await backUpDataDirectory(dataDir!, backup).then(({ encrypted }) => [...encrypted]), [[first, 3]])
    await withStore(dataDir!, async store => {
      const rotation = store.rotateEncryptionKey({ removesOldKeys: false })
      await assert.rejects(store.rotateEncryptionKey({ removesOldKeys: false }), { code: 429 })
      await assert.rejects(store.backUp(join(elsewhere!, 'b.backup')), { code: 429 })
      await rotation
    })
    restoreBackup({ file: backup, dataDir: dataDir!, force: true })
    assert.deepEqual(usedKeys(dataDir!), [keyNames(dataDir!)[0]], 'restored objects are encrypted with the newest key')

    await withStore(dataDir!, store => store.rotateEncryptionKey({ removesOldKeys: true }))
    assert.equal(keyNames(dataDir!).length, 1)
    for (const target of [dataDir!, join(other!, 'new')]) {
      assert.throws(() => restoreBackup({ file: backup, dataDir: target, force: true }), {
        code: 'EncryptionKeyMissing',
        message: new RegExp(`encrypted objects \\(3 with the key ${first}\\).*--encryption-provider-config`),
      })
    }
    const restored = join(other!, 'restored')
    restoreBackup({ file: backup, dataDir: restored, encryptionConfig: keys })
    assert.notDeepEqual(keyNames(restored), [first], 'a restored directory has its own key')
    assert.deepEqual(await withStore(restored, passwordsOf), { s0: 'value 0', s1: 'value 1', s2: 'value 2' })
  })
})

test('the number of keys is limited', async () => {
  await withDirectories(1, async dataDir => {
    await withStore(dataDir!, async store => {
      for (let i = 1; i < 100; i++) await store.rotateEncryptionKey({ removesOldKeys: false })
      await assert.rejects(store.rotateEncryptionKey({ removesOldKeys: false }), /there are 100 encryption keys/)
    })
    assert.equal(keyNames(dataDir!).length, 100)
  })
})

const hasOldForms = (dataDir: string) =>
  withDatabase(dataDir, db => db.prepare("SELECT 1 FROM meta WHERE name = 'reencrypting'").get() !== undefined)

const moduleUrl = (file: string) => JSON.stringify(new URL(file, import.meta.url).href)

// What the storage thread does, ended by SIGKILL at a chosen instant.
const program = `
import { Database } from ${moduleUrl('./database.ts')}
import { openEncryption, rotateKey } from ${moduleUrl('./reencryption.ts')}
const [file, config, instant] = process.argv.slice(1)
const kill = () => process.kill(process.pid, 'SIGKILL')
const database = new Database({ file, synchronous: 'FULL' })
const encryption = openEncryption(config, database)
database.encryptWith(encryption)
let steps = 0
const removeOldForms = () => Database.prototype.removeOldForms.call(database)
database.removeOldForms = () => {
  if (instant === 'before the file is rewritten') kill()
  removeOldForms()
  if (instant === 'before old keys are removed') kill()
}
await rotateKey(database, config, encryption, true, () => {
  if (++steps === Number(instant)) kill()
  return false
})
`

for (const { instant, isPartial } of [
  { instant: '1', isPartial: false },
  { instant: '3', isPartial: true },
  { instant: 'before the file is rewritten', isPartial: false },
  { instant: 'before old keys are removed', isPartial: false },
]) {
  test(`SIGKILL during a rotation loses nothing, and the next start completes it: ${Number(instant) ? `step ${instant}` : instant}`, async () => {
    await withDirectories(1, async dataDir => {
      const expected = await withStore(dataDir!, async store => {
        await fill(store, 1_000)
        return passwordsOf(store)
      })
      const args = ['--input-type=module-typescript', '-e', program, join(dataDir!, 'oarlock.db'), encryptionConfigPath(dataDir!), instant]
      const [, signal] = (await once(spawn(process.execPath, args, { stdio: 'inherit' }), 'exit')) as [number, string]
      assert.equal(signal, 'SIGKILL')
      assert.equal(keyNames(dataDir!).length, 2, 'the old key is removed last')
      assert.equal(usedKeys(dataDir!).length, isPartial ? 2 : 1)
      assert.deepEqual(await withStore(dataDir!, passwordsOf), expected)
      assert.deepEqual(usedKeys(dataDir!), [keyNames(dataDir!)[0]])
      assert.ok(!hasOldForms(dataDir!))
    })
  })
}
