import { match, rejects } from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { KubeObject } from '../../object/index.ts'
import { Store } from './index.ts'

const object = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name, uid: name, resourceVersion: '', creationTimestamp: '2026-01-01T00:00:00Z' },
})

const ways: Record<string, (dataDir: string) => void> = {
  'the database is deleted': dataDir => rmSync(join(dataDir, 'oarlock.db')),
  'the log is deleted': dataDir => rmSync(join(dataDir, 'oarlock.db-wal')),
  'the directory is moved': dataDir => renameSync(dataDir, `${dataDir}.moved`),
}

for (const [what, remove] of Object.entries(ways)) {
  test(`when ${what} while the server runs, no further write is acknowledged (invariant 5)`, async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-deleted-'))
    const logged: string[] = []
    const store = await Store.open({ dataDir, log: message => logged.push(message) })
    try {
      const table = store.table('things')
      await store.put(table, undefined, object('before'))
      remove(dataDir)
      await rejects(store.put(table, undefined, object('after')), { reason: 'InternalError', message: /removed or replaced/ })
      await rejects(store.put(table, undefined, object('later')), /removed or replaced/)
      match(logged.join(), /removed or replaced/)
    } finally {
      await store.close()
      for (const path of [dataDir, `${dataDir}.moved`]) rmSync(path, { recursive: true, force: true })
    }
  })
}
