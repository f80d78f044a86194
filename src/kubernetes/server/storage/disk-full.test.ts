import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { mountTmpfs, tmpfsUnavailable } from '../../../../test/support/mount-tmpfs.ts'
import type { KubeObject } from '../../object/index.ts'
import { Store } from './index.ts'

const thing = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name, uid: name, resourceVersion: '', creationTimestamp: '' },
  text: 'x'.repeat(20_000),
})

test('a full disk rejects writes, loses no acknowledged write, and recovers', { skip: tmpfsUnavailable() }, async () => {
  const disk = mountTmpfs(4 * 1024 * 1024)
  try {
    const store = await Store.open({ dataDir: disk.path })
    const table = store.table('things')
    const ballast = join(disk.path, 'ballast')
    await store.put(table, undefined, thing('first'))
    writeFileSync(ballast, Buffer.alloc(2 * 1024 * 1024))
    const acknowledged = new Set(['first'])
    let rejection: unknown
    for (let i = 0; i < 300 && !rejection; i++) {
      await store.put(table, undefined, thing(`t${i}`)).then(
        () => acknowledged.add(`t${i}`),
        error => (rejection = error),
      )
    }
    assert.match(String(rejection), /the disk of the data directory is full: nothing was written/)
    assert.equal((rejection as { code: number }).code, 507)
    assert.equal(table.size, acknowledged.size, 'reads continue and show only durable objects')
    const lost = await Promise.allSettled([store.put(table, undefined, thing('x')), store.put(table, store.head(table, 'x'), thing('x'))])
    assert.deepEqual(
      lost.map(({ status }) => status),
      ['rejected', 'rejected'],
      'a write based on a failed one fails with it',
    )
    assert.equal(store.head(table, 'x'), undefined)

    rmSync(ballast)
    await store.put(table, undefined, thing('after'))
    acknowledged.add('after')
    await store.close()
    const again = await Store.open({ dataDir: disk.path })
    assert.deepEqual(
      new Set(
        again
          .table('things')
          .snapshot()
          .map(entry => entry.name),
      ),
      acknowledged,
    )
    await again.close()
  } finally {
    await disk.unmount()
  }
})
