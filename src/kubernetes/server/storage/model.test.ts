import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { entryOf, type StoredEntry, stringifyAsciiJson } from './entry.ts'
import { parseEntry, Store, type StoredEvent } from './index.ts'
import { Table } from './table.ts'

const keys = ['a', 'b', 'n1/a', 'n1/b', 'n1/c', 'n10/a', 'n2/a', 'n2/é']
const owners = ['o1', 'o2']

type Step =
  | { do: 'put'; key: string; size: number; owner: string | undefined }
  | { do: 'remove'; key: string }
  | { do: 'list' }
  | { do: 'since'; back: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('put' as const),
    key: fc.constantFrom(...keys),
    size: fc.constantFrom(0, 10, 500),
    owner: fc.constantFrom(undefined, ...owners),
  }),
  fc.record({ do: fc.constant('remove' as const), key: fc.constantFrom(...keys) }),
  fc.record({ do: fc.constant('list' as const) }),
  fc.record({ do: fc.constant('since' as const), back: fc.nat(14) }),
)

function objectOf(key: string, revision: number, size: number, owner: string | undefined) {
  const [name, namespace] = key.split('/').reverse()
  return {
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: {
      name: name!,
      ...(namespace && { namespace }),
      uid: key,
      resourceVersion: String(revision),
      creationTimestamp: '',
      ...(owner && { ownerReferences: [{ apiVersion: 'v1', kind: 'Thing', name: owner, uid: owner }] }),
    },
    text: 'x'.repeat(size),
  }
}

const byKey = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)

test('a table and its history agree with a Map and a plain list of events (invariant 6)', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), steps => {
      const table = new Table('things', { events: 10, bytes: 4_000 })
      const map = new Map<string, StoredEntry>()
      const log: { type: string; revision: number; key: string }[] = []
      const past = new Map<number, [string, number][]>([[0, []]])
      const kept: { list: readonly StoredEntry[]; copy: StoredEntry[] }[] = []
      let revision = 0
      for (const step of steps) {
        if (step.do === 'put') {
          revision += 2
          const object = objectOf(step.key, revision, step.size, step.owner)
          const before = map.get(step.key)
          const entry = entryOf(1, object, revision, stringifyAsciiJson(object), undefined)
          table.apply(before, entry, entry)
          map.set(step.key, entry)
          log.push({ type: before ? 'MODIFIED' : 'ADDED', revision, key: step.key })
        } else if (step.do === 'remove') {
          const before = map.get(step.key)
          if (!before) continue
          revision += 2
          table.apply(before, undefined, { ...before, revision })
          map.delete(step.key)
          log.push({ type: 'DELETED', revision, key: step.key })
        } else if (step.do === 'list') {
          const expected = [...map].sort(byKey).map(([, entry]) => entry)
          const list = table.snapshot()
          assert.deepEqual(list, expected)
          kept.push({ list, copy: [...list] })
          for (const namespace of ['n1', 'n10', 'n2', 'none']) {
            assert.deepEqual(
              table.inNamespace(namespace),
              expected.filter(entry => entry.namespace === namespace),
            )
          }
          for (const owner of owners) {
            const owned = expected.filter(entry => entry.owners?.includes(owner)).map(entry => entry.key)
            assert.deepEqual([...(table.ownedBy(owner) ?? [])].sort(), owned.sort())
          }
        } else {
          const from = Math.max(0, revision - step.back)
          const events = table.eventsSince(from)
          assert.equal(events === undefined, from < table.floor)
          if (events) {
            assert.deepEqual(
              events.map(({ type, revision, entry }) => ({ type, revision, key: entry.key })),
              log.filter(event => event.revision > from),
            )
          }
          const then = table.snapshotAt(from)
          const known = past.get(from % 2 === 0 ? from : from - 1)
          if (then) {
            assert.deepEqual(
              then.map(entry => [entry.key, entry.revision]),
              known,
            )
          } else assert.ok(from < table.floor)
        }
        past.set(
          revision,
          [...map].sort(byKey).map(([key, entry]) => [key, entry.revision]),
        )
        assert.equal(table.size, map.size)
        assert.equal(
          table.bytes,
          [...map.values()].reduce((sum, entry) => sum + entry.text.length, 0),
        )
      }
      for (const { list, copy } of kept) assert.deepEqual(list, copy, 'a returned list never changes')
    }),
    { numRuns: Number(process.env.OARLOCK_TEST_RUNS ?? 3_000) },
  )
})

test('a store with overlapping writes agrees with a Map in every result, event and head (invariants 5 and 6)', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-model-'))
  const store = await Store.open({ dataDir, synchronous: 'OFF', maxDeferredMs: 20 })
  const write = fc.record({
    key: fc.constantFrom(...keys),
    action: fc.constantFrom('put', 'put', 'defer', 'remove', 'await', 'yield'),
    value: fc.nat(1_000),
  })
  const whole = new Map<string, Map<string, number>>()
  let run = 0
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(write, { maxLength: 40, size: 'max' }), async writes => {
        const table = store.table(`things${run++}`)
        const model = new Map<string, number>()
        const watched = new Map<string, number>()
        let last = 0
        table.listeners.add((events: readonly StoredEvent[]) => {
          for (const { type, revision, entry, before } of events) {
            assert.ok(revision > last)
            last = revision
            assert.equal(before !== undefined, watched.has(entry.key))
            if (type === 'DELETED') watched.delete(entry.key)
            else watched.set(entry.key, parseEntry(entry).value as number)
          }
        })
        const results: Promise<void>[] = []
        for (const { key, action, value } of writes) {
          if (action === 'await') await Promise.all(results)
          if (action === 'yield') await new Promise(setImmediate)
          if (action === 'await' || action === 'yield') continue
          const head = store.head(table, key)
          assert.equal(head && parseEntry(head).value, model.get(key), 'a write is based on all writes before it')
          const object = { ...objectOf(key, 0, 0, undefined), value }
          if (action === 'put' || (action === 'defer' && head)) {
            model.set(key, value)
            const written = action === 'defer' ? store.putDeferred(table, head!, object) : store.put(table, head, object)
            results.push(
              written.then(entry => {
                assert.equal(parseEntry(entry).value, value)
                assert.ok((table.get(key)?.revision ?? entry.revision) >= entry.revision, 'an acknowledged write can be read')
              }),
            )
          } else if (action === 'remove' && head) {
            model.delete(key)
            results.push(store.remove(table, head, object).then(() => {}))
          }
        }
        await Promise.all(results)
        const expected = [...model].sort(byKey)
        assert.deepEqual(
          table.snapshot().map(entry => [entry.key, parseEntry(entry).value]),
          expected,
        )
        assert.deepEqual([...watched].sort(byKey), expected)
        whole.set(table.name, model)
      }),
      { numRuns: Number(process.env.OARLOCK_TEST_RUNS ?? 500) },
    )
    await store.close()
    const again = await Store.open({ dataDir, synchronous: 'OFF' })
    for (const [name, model] of whole) {
      assert.deepEqual(
        again
          .table(name)
          .snapshot()
          .map(entry => [entry.key, parseEntry(entry).value]),
        [...model].sort(byKey),
        'the objects after a restart agree too',
      )
    }
    await again.close()
  } finally {
    await store.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
