import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeDataDir, startTestServer } from '../server.testing.ts'
import { backUpDataDirectory, restoreBackup, Store, writeBackup } from './index.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const configMap = (name: string, value: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { value } })

async function withDirectories(count: number, use: (...directories: string[]) => Promise<void>): Promise<void> {
  const directories = Array.from({ length: count }, makeDataDir)
  try {
    await use(...directories)
  } finally {
    for (const directory of directories) rmSync(directory, { recursive: true, force: true })
  }
}

test('a backup during writes is a consistent snapshot: it has every write acknowledged before it', async () => {
  await withDirectories(2, async (dataDir, elsewhere) => {
    const server = await startTestServer({ dataDir })
    let isDone = false
    const counters = new Array<number>(8).fill(0)
    const write = async (writer: number) => {
      while (!isDone) {
        const value = counters[writer]! + 1
        // The second of a pair is written after the first was acknowledged: no copy may have only the second.
        for (const half of ['a', 'b']) {
          const { code } = await server.call(`${maps}/w${writer}${half}?fieldManager=t`, {
            method: 'PATCH',
            type: 'application/apply-patch+yaml',
            body: configMap(`w${writer}${half}`, String(value)),
          })
          assert.ok(code === 200 || code === 201)
        }
        counters[writer] = value
      }
    }
    const writing = counters.map((_, writer) => write(writer))
    const path = join(elsewhere!, 'backup.db')
    // Also when an assertion fails: the writers would never end.
    try {
      for (let round = 0; round < 3; round++) {
        const before = [...counters]
        await server.server.backUp(path)
        assert.equal(statSync(path).mode & 0o777, 0o600)
        const restored = join(elsewhere!, `restored-${round}`)
        restoreBackup({ file: path, dataDir: restored })
        const store = await Store.open({ dataDir: restored })
        const found = (name: string) =>
          Number(/"value":"(\d+)"/.exec(store.table('configmaps').get(`default/${name}`)?.text ?? '')?.[1] ?? 0)
        for (const [writer, acknowledged] of before.entries()) {
          const [a, b] = [found(`w${writer}a`), found(`w${writer}b`)]
          assert.ok(a >= acknowledged && b >= acknowledged, `writer ${writer}: ${a}, ${b}, acknowledged ${acknowledged}`)
          assert.ok(a === b || a === b + 1, `writer ${writer}: a is ${a}, b is ${b}`)
        }
        await store.close()
      }
    } finally {
      isDone = true
    }
    await Promise.all(writing)
    await server.close()
    assert.deepEqual(
      readdirSync(dataDir!).filter(name => name.includes('backup')),
      [],
    )
  })
})

test('after a restore, resource versions are above all assigned before, and a watch from a lost version gets 410', async () => {
  await withDirectories(2, async (dataDir, elsewhere) => {
    const path = join(elsewhere!, 'backup.db')
    const first = await startTestServer({ dataDir })
    const { body: kept } = await first.call(maps, { body: configMap('kept', 'old') })
    await first.server.backUp(path)
    const { body: changed } = await first.call(`${maps}/kept`, { method: 'PUT', body: configMap('kept', 'lost') })
    const { body: lost } = await first.call(maps, { body: configMap('lost', 'x') })
    assert.throws(() => restoreBackup({ file: path, dataDir: dataDir!, force: true }), { code: 'DataInUse' }, 'a server runs on it')
    await first.close()

    assert.throws(() => restoreBackup({ file: path, dataDir: dataDir! }), /oarlock\.db exists: .*--force/)
    const { objects, floor, replacedPath, skipped } = restoreBackup({ file: path, dataDir: dataDir!, force: true })
    assert.ok(objects > 5 && skipped === undefined && replacedPath !== undefined && statSync(replacedPath).size > 0)

    const second = await startTestServer({ dataDir })
    const { body: list } = await second.call(maps)
    assert.deepEqual(
      list.items.filter(({ metadata }) => metadata.name !== 'kube-root-ca.crt').map(({ metadata }) => metadata.name),
      ['kept'],
    )
    assert.deepEqual((await second.call(`${maps}/kept`)).body, kept, 'the object is unchanged, including its resource version')
    assert.ok(Number(list.metadata?.resourceVersion) >= floor && floor > Number(lost.metadata.resourceVersion))
    for (const version of [kept, changed, lost].map(({ metadata }) => metadata.resourceVersion)) {
      const watch = await second.watch(`${maps}?watch=1&resourceVersion=${version}`)
      const event = await watch.next()
      assert.equal(event?.type, 'ERROR')
      assert.equal((event.object as { code?: number }).code, 410)
      watch.stop()
    }
    const stale = { ...configMap('kept', 'x'), metadata: { name: 'kept', resourceVersion: changed.metadata.resourceVersion } }
    assert.equal((await second.call(`${maps}/kept`, { method: 'PUT', body: stale })).code, 409)
    const current = await second.watch(`${maps}?watch=1&resourceVersion=${list.metadata?.resourceVersion}`)
    const { body: next } = await second.call(maps, { body: configMap('next', 'x') })
    assert.ok(Number(next.metadata.resourceVersion) > floor)
    assert.equal((await current.next())?.object.metadata.name, 'next')
    current.stop()
    await second.close()
    const third = await startTestServer({ dataDir })
    assert.equal((await third.call(maps, { body: configMap('third', 'x') })).code, 201, 'the floor survives a restart')
    await third.close()
  })
})

test('a restore does not reuse resource versions when the clock has stepped back', async () => {
  await withDirectories(2, async (dataDir, elsewhere) => {
    const thing = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', uid: 'a', resourceVersion: '', creationTimestamp: '' } }
    const store = await Store.open({ dataDir: dataDir! })
    await store.put(store.table('things'), undefined, structuredClone(thing))
    await store.close()
    const path = join(elsewhere!, 'b.db')
    const { revision } = await backUpDataDirectory(dataDir!, path)
    const later = await Store.open({ dataDir: dataDir! })
    const { revision: lost } = await later.put(later.table('things'), later.head(later.table('things'), 'a'), structuredClone(thing))
    await later.close()
    assert.ok(lost > revision)
    const { floor } = restoreBackup({ file: path, dataDir: dataDir!, force: true, nowMs: Date.UTC(2026, 0, 2) })
    assert.ok(floor > lost)
  })
})

test('salvage keeps the readable objects, and reports the skipped ones and those without owners', async () => {
  await withDirectories(2, async (dataDir, elsewhere) => {
    const store = await Store.open({ dataDir: dataDir! })
    const object = (name: string, owner?: string) => ({
      apiVersion: 'v1',
      kind: 'Thing',
      metadata: {
        name,
        uid: name,
        resourceVersion: '',
        creationTimestamp: '',
        ...(owner && { ownerReferences: [{ apiVersion: 'v1', kind: 'Thing', name: owner, uid: owner }] }),
      },
      text: 'x'.repeat(1_000),
    })
    for (let i = 0; i < 100; i++) await store.put(store.table('things'), undefined, object(`t${i}`, i > 0 ? `t${i - 1}` : undefined))
    await store.close()
    const file = join(dataDir!, 'oarlock.db')
    const bytes = readFileSync(file)
    bytes.fill(0x5a, 4096 * 10, 4096 * 11)
    writeFileSync(file, bytes)

    const target = join(elsewhere!, 'new')
    assert.throws(() => restoreBackup({ file, dataDir: target }), { code: 'DataCorrupt' })
    const { objects, skipped, skippedObjects, orphans } = restoreBackup({ file, dataDir: target, salvage: true })
    assert.ok(objects >= 90 && objects < 100)
    assert.match(skipped ?? '', new RegExp(`^${100 - objects} objects are corrupt: `))
    // A page that cannot be read is one entry, without the names of its objects.
    const rows = skippedObjects.map(text => /^rows (\d+) to (\d+) cannot be read/.exec(text)?.slice(1).map(Number) ?? [1, 1])
    assert.equal(
      rows.reduce((sum, [from = 0, to = 0]) => sum + to - from + 1, 0),
      100 - objects,
      skippedObjects.join('\n'),
    )
    assert.equal(orphans.get('things'), 1)
    const again = await Store.open({ dataDir: target })
    assert.equal(again.table('things').size, objects)
    await again.close()
    assert.ok(readFileSync(file).equals(bytes), 'the corrupt file is unchanged')
  })
})

test('a failed backup leaves the previous file unchanged and no temporary files', async () => {
  await withDirectories(1, async directory => {
    const path = join(directory!, 'b.db')
    writeFileSync(path, 'before')
    await assert.rejects(
      writeBackup(path, async temporary => writeFileSync(temporary, 'not a database'.repeat(500))),
      { code: 'DataCorrupt' },
    )
    assert.equal(readFileSync(path, 'utf8'), 'before')
    assert.deepEqual(readdirSync(directory!), ['b.db'])
    assert.throws(() => restoreBackup({ file: path, dataDir: join(directory!, 'x') }), { code: 'DataCorrupt' })
  })
})

test('a restore of a file that is no backup names the file, and removes the directory it created', async () => {
  await withDirectories(1, async directory => {
    const file = join(directory, 'bad.yaml')
    const dataDir = join(directory, 'new', 'data')
    writeFileSync(file, 'a: b\n')
    assert.throws(() => restoreBackup({ file, dataDir }), { message: new RegExp(`^${file} is not an oarlock backup: `) })
    assert.deepEqual(readdirSync(directory), ['bad.yaml'])
  })
})
