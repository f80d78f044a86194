import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { KubeObject, StatusError } from '../../object/index.ts'
import { Store, type StoreOptions } from './index.ts'

const megabyte = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name, uid: name, resourceVersion: '', creationTimestamp: '' },
  text: 'x'.repeat(1024 * 1024),
})

async function withStore(options: Partial<StoreOptions>, use: (store: Store) => Promise<void>): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-pressure-'))
  const store = await Store.open({ dataDir, synchronous: 'OFF', ...options })
  try {
    await use(store)
  } finally {
    await store.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

test('large writes that arrive together are split into several commits', async () => {
  await withStore({}, async store => {
    const table = store.table('things')
    await Promise.all(Array.from({ length: 40 }, (_, index) => store.put(table, undefined, megabyte(`t${index}`))))
    assert.equal(table.size, 40)
    assert.ok(store.stats().commits >= 5, `${store.stats().commits} commits for 40 MiB`)
  })
})

test('writes beyond the queue limit get 429, and are accepted again when the disk has caught up (invariant 10)', async () => {
  await withStore({ maxQueuedBytes: 4 * 1024 * 1024 }, async store => {
    const table = store.table('things')
    const results = await Promise.allSettled(Array.from({ length: 20 }, (_, index) => store.put(table, undefined, megabyte(`t${index}`))))
    const rejected = results.filter(result => result.status === 'rejected').map(({ reason }) => reason as StatusError)
    assert.equal(rejected.length, 16)
    for (const { code, details } of rejected) assert.deepEqual([code, details?.retryAfterSeconds], [429, 1])
    assert.equal(table.size, 4)
    assert.equal(store.head(table, 't19'), undefined, 'a rejected write leaves nothing behind')
    assert.equal(store.stats().queuedBytes, 0)
    await store.put(table, undefined, megabyte('t19'))
    assert.equal(table.size, 5)
  })
})
