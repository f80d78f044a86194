import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import type { KubeObject } from '../../object/index.ts'
import { nextRevision, readRevision, revisionEpochMs } from '../../util/index.ts'
import { Store } from './index.ts'

const startMs = revisionEpochMs + 1_000_000
const thing = (name: string): KubeObject => ({
  ...{ apiVersion: 'v1', kind: 'Thing' },
  metadata: { name, uid: name, resourceVersion: '', creationTimestamp: '' },
})

function dataDirOf(t: TestContext): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-clock-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  return dataDir
}

test('after a revision of another server, what is shown at it is complete, and later writes get higher ones', async t => {
  const store = await Store.open({ dataDir: dataDirOf(t), partition: 3, nowMs: () => startMs })
  const table = store.table('things')
  const first = store.put(table, undefined, thing('a'))
  const seen = nextRevision(0, startMs + 500, 9)
  await store.raise(seen)
  assert.equal(store.revision, seen)
  assert.deepEqual(
    table.snapshotAt(seen)?.map(({ name }) => name),
    ['a'],
  )
  assert.ok((await first).revision < seen)
  const { revision } = await store.put(table, undefined, thing('b'))
  assert.ok(revision > seen)
  assert.equal(readRevision(revision).partition, 3)
  assert.equal(store.raise(seen), undefined)
  assert.deepEqual(
    table.snapshotAt(seen)?.map(({ name }) => name),
    ['a'],
  )
  await store.close()
})

test('a revision that is more than 60 s ahead is rejected, with what to do, and changes nothing', async t => {
  const store = await Store.open({ dataDir: dataDirOf(t), nowMs: () => startMs })
  const ahead = (ms: number) => nextRevision(0, startMs + ms, 1)
  assert.throws(
    () => store.raise(ahead(61_000)),
    /is 61 s ahead of the clock of this server, at most 60 s are accepted: synchronize the clocks/,
  )
  assert.equal(store.newestRevision, 0)
  await store.raise(ahead(60_000))
  assert.equal(store.revision, ahead(60_000))
  await store.close()
})

test('a server that was killed assigns no revision below one that it was raised to, also when its clock goes back', async t => {
  const dataDir = dataDirOf(t)
  const seen = nextRevision(0, startMs + 30_000, 9)
  const program = `
    import { Store } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)}
    const store = await Store.open({ dataDir: process.argv[1], nowMs: () => ${startMs} })
    await store.raise(${seen})
    console.log(store.revision)
    setInterval(() => {}, 1_000)`
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  for await (const line of createInterface(child.stdout)) {
    assert.equal(Number(line), seen)
    break
  }
  child.kill('SIGKILL')
  await exited
  const store = await Store.open({ dataDir, nowMs: () => startMs - 3_600_000 })
  const { revision } = await store.put(store.table('things'), undefined, thing('a'))
  assert.ok(revision > seen)
  await store.close()
  // Reservations follow the wall clock: frequent restarts do not move the clock ahead without end.
  const again = await Store.open({ dataDir, nowMs: () => startMs + 40_000 })
  assert.ok(readRevision(again.newestRevision).atMs < startMs + 33_000)
  await again.close()
})

test('revisions stay within a minute of the wall clock, however often a server is killed', async t => {
  const dataDir = dataDirOf(t)
  const program = `
    import { Store, parseEntry } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)}
    const store = await Store.open({ dataDir: process.argv[1], nowMs: () => ${startMs} })
    const table = store.table('leases')
    const object = () => ({ apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', uid: 'a', resourceVersion: '', creationTimestamp: '' } })
    let head = store.head(table, 'a') ?? (await store.put(table, undefined, object()))
    await store.raise(${nextRevision(0, startMs + 1, 9)})
    for (let i = 0; i < 5; i++) head = await store.putDeferred(table, head, object())
    console.log(head.revision)
    setInterval(() => {}, 1_000)`
  let last = 0
  for (let kill = 0; kill < 6; kill++) {
    const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program, dataDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exited = once(child, 'exit')
    for await (const line of createInterface(child.stdout)) {
      assert.ok(Number(line) > last)
      last = Number(line)
      break
    }
    child.kill('SIGKILL')
    await exited
  }
  assert.ok(readRevision(last).atMs < startMs + 60_000, `${readRevision(last).atMs - startMs} ms ahead`)
})
