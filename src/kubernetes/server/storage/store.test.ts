import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import fc from 'fast-check'
import type { KubeObject } from '../../object/index.ts'
import { parseEntry, Store, type StoredEvent, type Table } from './index.ts'

const things = 'things'

async function withDataDir(use: (dataDir: string) => Promise<void>): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-store-'))
  try {
    await use(dataDir)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function thing(name: string, value: number): KubeObject {
  return { apiVersion: 'v1', kind: 'Thing', metadata: { name, uid: name, resourceVersion: '', creationTimestamp: '' }, value }
}

const contentOf = (table: Table) => table.snapshot().map(entry => [entry.key, parseEntry(entry).value, entry.revision])

type Step = { key: string; value: number; action: 'put' | 'remove' | 'wait' }

test('store, events and restart agree with a Map for random writes (invariants 5 and 6)', async () => {
  const step: fc.Arbitrary<Step> = fc.record({
    key: fc.constantFrom('a', 'b', 'c', 'd/e', 'd/f'),
    value: fc.nat(1_000),
    action: fc.constantFrom('put', 'put', 'remove', 'wait'),
  })
  await withDataDir(async root => {
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
        const dataDir = mkdtempSync(join(root, `${run++}-`))
        const store = await Store.open({ dataDir, synchronous: 'OFF' })
        const table = store.table(things)
        const model = new Map<string, number>()
        const watched = new Map<string, number>()
        let lastSeen = 0
        const see = (events: readonly StoredEvent[]) => {
          for (const { type, revision, entry } of events) {
            assert.ok(revision > lastSeen, 'events come in revision order')
            lastSeen = revision
            assert.equal(type === 'ADDED', type !== 'DELETED' && !watched.has(entry.key))
            if (type === 'DELETED') assert.ok(watched.delete(entry.key))
            else watched.set(entry.key, parseEntry(entry).value as number)
          }
        }
        table.listeners.add(see)
        const pending: Promise<unknown>[] = []
        for (const { key, value, action } of steps) {
          const head = store.head(table, key)
          const [namespace, name] = key.includes('/') ? key.split('/') : [undefined, key]
          const object = { ...thing(name!, value), metadata: { ...thing(name!, value).metadata, namespace } }
          if (action === 'wait') await Promise.all(pending)
          else if (action === 'put') {
            pending.push(store.put(table, head, object))
            model.set(key, value)
          } else if (head) {
            pending.push(store.remove(table, head, object))
            model.delete(key)
          }
        }
        await Promise.all(pending)
        const expected = [...model].sort(([a], [b]) => (a < b ? -1 : 1))
        assert.deepEqual(
          contentOf(table).map(([key, value]) => [key, value]),
          expected,
        )
        assert.deepEqual(
          [...watched].sort(([a], [b]) => (a < b ? -1 : 1)),
          expected,
        )
        const before = contentOf(table)
        const { revision } = store
        await store.close()
        const again = await Store.open({ dataDir, synchronous: 'OFF' })
        assert.deepEqual(contentOf(again.table(things)), before)
        assert.equal(again.revision, revision)
        assert.equal(again.table(things).floor, again.table(things).lastRevision, 'history ends with the process')
        await again.close()
      }),
      { numRuns: Number(process.env.OARLOCK_TEST_RUNS ?? 6) },
    )
  })
})

test('the history of a resource that was never written continues after a restart, but not in another database', async () => {
  const ofStore = async (dataDir: string, use: (store: Store) => Promise<number>) => {
    const store = await Store.open({ dataDir })
    const result = await use(store)
    await store.close()
    return result
  }
  const write = async (store: Store, name: string) => {
    await store.put(store.table(name), undefined, thing('a', 1))
    return store.revision
  }
  const others = 'others.test'
  await withDataDir(async dataDir => {
    await ofStore(dataDir, store => write(store, 'first.test'))
    const seen = await ofStore(dataDir, store => write(store, 'second.test'))
    const read = await ofStore(dataDir, async store => {
      await write(store, 'third.test')
      assert.deepEqual(store.table(others).eventsSince(seen), [])
      assert.deepEqual(store.table(others).snapshotAt(seen), [])
      return store.revision
    })
    await withDataDir(async other => {
      await ofStore(other, store => write(store, 'first.test'))
      await ofStore(other, async store => {
        assert.equal(store.table(others).eventsSince(read), undefined, 'it may have been written in the first one')
        return store.revision
      })
    })
  })
})

test('writes to one key are queued without waiting for each other', async () => {
  await withDataDir(async dataDir => {
    const store = await Store.open({ dataDir })
    const table = store.table(things)
    const done = []
    for (let value = 0; value < 500; value++) done.push(store.put(table, store.head(table, 'a'), thing('a', value)))
    assert.equal(table.get('a'), undefined, 'nothing is visible before it is on disk')
    const entries = await Promise.all(done)
    assert.deepEqual(
      entries.map(entry => parseEntry(entry).value),
      Array.from({ length: 500 }, (_, value) => value),
    )
    assert.ok(store.stats().commits < 50, 'they share commits')
    await store.close()
  })
})

test('a second store on the same directory fails to open, and the first continues', async () => {
  await withDataDir(async dataDir => {
    const store = await Store.open({ dataDir })
    await assert.rejects(Store.open({ dataDir }), {
      name: 'ServerStartError',
      code: 'DataInUse',
      message: /is in use by another oarlock process/,
    })
    await store.put(store.table(things), undefined, thing('a', 1))
    await store.close()
    await (await Store.open({ dataDir })).close()
  })
})

test('only the owner can read the database, for any mode of its directory (invariant 9)', async () => {
  await withDataDir(async dataDir => {
    chmodSync(dataDir, 0o755)
    const file = join(dataDir, 'oarlock.db')
    writeFileSync(file, '', { mode: 0o644 })
    const store = await Store.open({ dataDir })
    const files = readdirSync(dataDir).filter(name => name !== 'keys')
    assert.ok(files.length > 1, 'there is a write-ahead log')
    for (const name of files) assert.equal(statSync(join(dataDir, name)).mode & 0o777, 0o600, name)
    await store.close()
  })
})

test('a newer format and a corrupt file fail to open', async () => {
  await withDataDir(async dataDir => {
    const file = join(dataDir, 'oarlock.db')
    const db = new DatabaseSync(file)
    db.exec('PRAGMA user_version=999')
    db.close()
    await assert.rejects(Store.open({ dataDir }), {
      code: 'DataTooNew',
      message: /has data format 999, this version of oarlock reads up to 4: /,
    })
    rmSync(file)
    writeFileSync(file, 'this is not a database, but it is long enough to look like one'.repeat(100))
    await assert.rejects(Store.open({ dataDir }), { code: 'DataCorrupt' })
    await assert.rejects(Store.open({ dataDir: join(dataDir, 'none') }), { code: 'DataDirectoryUnwritable' })
  })
})
