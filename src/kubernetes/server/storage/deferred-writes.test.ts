import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import type { KubeObject } from '../../object/index.ts'
import { parseEntry, Store } from './index.ts'

const leases = 'leases'
const others = 'others'

async function withDataDir(use: (dataDir: string) => Promise<void>): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-deferred-'))
  try {
    await use(dataDir)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function lease(name: string, holder: number, renewal: number): KubeObject {
  return { apiVersion: 'v1', kind: 'Thing', metadata: { name, uid: name, resourceVersion: '', creationTimestamp: '' }, holder, renewal }
}

/** Changes holders durably, renews in between, writes another table, and prints every write after its acknowledgement until it is killed. */
const program = `
import { writeSync } from 'node:fs'
import { Store, parseEntry } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)}
const [dataDir, maxDeferredMs] = process.argv.slice(1)
const store = await Store.open({ dataDir, maxDeferredMs: Number(maxDeferredMs) })
const leases = store.table('leases')
const others = store.table('others')
function print(what, { name, revision }, object) {
  // All at a time and before anything else happens, also when the reader is slow: the pipe may be full for a moment.
  for (let rest = Buffer.from(JSON.stringify({ what, name, revision, ...object }) + '\\n'); rest.length > 0; ) {
    try {
      rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}
const meta = name => ({ apiVersion: 'v1', kind: 'Thing', metadata: { name, uid: name, resourceVersion: '', creationTimestamp: '' } })
async function hold(name) {
  let last = { holder: 0, renewal: 0 }
  for (let turn = 0; ; turn++) {
    const head = store.head(leases, name)
    if (!head || turn % 7 === 6) {
      last = { holder: last.holder + 1, renewal: last.renewal }
      print('held', await store.put(leases, head, { ...meta(name), ...last }), last)
    } else {
      last = { holder: last.holder, renewal: last.renewal + 1 }
      print('renewed', await store.putDeferred(leases, head, { ...meta(name), ...last }), last)
    }
    if (turn % 3 === 0) await new Promise(resolve => setTimeout(resolve, 1))
  }
}
async function writeOthers() {
  for (let value = 1; ; value++) {
    print('other', await store.put(others, store.head(others, 'o'), { ...meta('o'), value }), { value })
    await new Promise(resolve => setTimeout(resolve, 3))
  }
}
for (const name of ['a', 'b', 'c', 'd']) void hold(name)
void writeOthers()
`

type Line = { what: 'held' | 'renewed' | 'other'; name: string; revision: number; holder: number; renewal: number; value: number }

async function runUntilKilled(dataDir: string, maxDeferredMs: number, most: number): Promise<Line[]> {
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program, dataDir, String(maxDeferredMs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const lines: Line[] = []
  for await (const text of createInterface(child.stdout)) {
    lines.push(JSON.parse(text) as Line)
    if (lines.length === most) child.kill('SIGKILL')
  }
  await exited
  assert.ok(lines.length >= most, 'the process ended before it was killed')
  return lines
}

for (const maxDeferredMs of [20, 10_000]) {
  test(`after SIGKILL no holder is lost and no revision returns, with renewals stored after ${maxDeferredMs} ms (invariants 5 and 6)`, async () => {
    await withDataDir(async dataDir => {
      let highest = 0
      for (const most of [40, 400, 900]) {
        const lines = await runUntilKilled(dataDir, maxDeferredMs, most)
        assert.ok(
          lines.every(({ revision }) => revision > highest),
          'a revision was assigned again after the kill before',
        )
        for (const { revision } of lines) highest = Math.max(highest, revision)

        // The clock was set back by a day.
        const store = await Store.open({ dataDir, nowMs: () => Date.now() - 86_400_000 })
        const table = store.table(leases)
        assert.ok(store.wasInterrupted(table))
        assert.ok(!store.wasInterrupted(store.table(others)))
        for (const name of ['a', 'b', 'c', 'd']) {
          const ofName = lines.filter(line => line.name === name)
          const held = ofName.filter(({ what }) => what === 'held').at(-1)
          const last = ofName.at(-1)
          if (!held || !last) continue
          const stored = parseEntry(table.get(name)!) as unknown as Line
          assert.ok(stored.holder >= held.holder, `${name}: holder ${stored.holder} is stored, ${held.holder} was acknowledged`)
          assert.ok(stored.renewal >= held.renewal, 'a holder change contains the renewals before it')
        }
        const other = lines.filter(({ what }) => what === 'other').at(-1)!
        assert.ok((parseEntry(store.table(others).get('o')!).value as number) >= other.value)
        // A client that knows a version that may be lost has to list again; other tables have lost nothing.
        for (const { what, revision } of lines) {
          if (what !== 'other') assert.equal(table.eventsSince(revision), undefined)
        }
        // The last write may be on disk although the process was killed before it printed it.
        const known = Math.max(highest, store.table(others).lastRevision)
        assert.ok(store.table(others).eventsSince(known), 'a watch of another table continues')
        assert.ok(store.revision >= highest)
        const next = await store.put(store.table(others), undefined, lease(`n${most}`, 0, 0))
        assert.ok(next.revision > highest)
        highest = next.revision
        await store.close()
      }
    })
  })
}

test('renewals need no commit until they are due, and then one for the newest version', async () => {
  await withDataDir(async dataDir => {
    const store = await Store.open({ dataDir, maxDeferredMs: 400 })
    const table = store.table(leases)
    const seen: number[] = []
    table.listeners.add(events => seen.push(...events.map(({ revision }) => revision)))
    await store.put(table, undefined, lease('a', 1, 0))
    await store.putDeferred(table, store.head(table, 'a')!, lease('a', 1, 1))
    const { commits } = store.stats()
    assert.equal(commits, 2, 'the first renewal reserves revisions')
    for (let renewal = 2; renewal <= 100; renewal++) await store.putDeferred(table, store.head(table, 'a')!, lease('a', 1, renewal))
    assert.equal(store.stats().commits, commits)
    assert.equal(store.stats().deferredWrites, 1)
    assert.equal(parseEntry(table.get('a')!).renewal, 100)
    assert.deepEqual(
      seen,
      seen.toSorted((a, b) => a - b),
    )
    assert.equal(seen.length, 101)
    while (store.stats().deferredWrites > 0) await new Promise(setImmediate)
    await store.close()
    assert.equal(store.stats().commits, commits + 2, 'one for the newest version, one that removes the reservation')
  })
})

test('after a clean shutdown nothing is lost and watches continue', async () => {
  await withDataDir(async dataDir => {
    const store = await Store.open({ dataDir })
    const table = store.table(leases)
    await store.put(table, undefined, lease('a', 1, 0))
    const { revision } = await store.putDeferred(table, store.head(table, 'a')!, lease('a', 1, 1))
    await store.close()
    const again = await Store.open({ dataDir, nowMs: () => Date.now() - 86_400_000 })
    assert.ok(!again.wasInterrupted(again.table(leases)))
    assert.equal(parseEntry(again.table(leases).get('a')!).renewal, 1)
    assert.equal(again.revision, revision)
    assert.deepEqual(again.table(leases).eventsSince(revision), [])
    await again.close()
  })
})

test('a renewal over a write that fails is rejected, other renewals are not', async () => {
  await withDataDir(async dataDir => {
    const store = await Store.open({ dataDir })
    const table = store.table(leases)
    await store.put(table, undefined, lease('a', 1, 0))
    await store.put(table, undefined, lease('b', 1, 0))
    rmSync(join(dataDir, 'oarlock.db'))
    const change = store.put(table, store.head(table, 'a'), lease('a', 2, 0))
    const dependent = store.putDeferred(table, store.head(table, 'a')!, lease('a', 2, 1))
    const settled = await Promise.allSettled([change, dependent])
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    assert.equal(parseEntry(table.get('a')!).holder, 1)
    await store.close()
  })
})
