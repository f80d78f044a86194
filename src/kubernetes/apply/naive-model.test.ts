import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Json, JsonObject, ManagedFieldsEntry } from '../object/object.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { pathsOf } from './field-set.ts'
import { applyServerSide, trackUpdate } from './index.ts'

/**
 * A simple model of ownership on objects flattened to leaves: the keys of a map, the items of a set, the fields of a map list,
 * and an atomic list as a whole. Containers are not modeled: their ownership is recorded from upstream in upstream.test.ts.
 */
type Leaves = Map<string, string>
type Model = { live: Leaves; owners: Map<string, Set<string>> }

const schema: StructuralSchema = {
  type: 'object',
  properties: {
    keep: { type: 'string' },
    m: { type: 'object', additionalProperties: { type: 'string' } },
    s: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
    l: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
      items: { type: 'object', properties: { k: { type: 'string' }, a: { type: 'string' }, b: { type: 'string' } } },
    },
    x: { type: 'array', items: { type: 'string' } },
  },
}

type Body = { m?: Record<string, string>; s?: string[]; l?: { k: string; a?: string; b?: string }[]; x?: string[] }

function flatten({ m = {}, s = [], l = [], x }: Body): Leaves {
  const leaves: Leaves = new Map()
  for (const [key, value] of Object.entries(m)) leaves.set(`.m.${key}`, value)
  for (const item of s) leaves.set(`.s[="${item}"]`, item)
  for (const { k, ...fields } of l) {
    leaves.set(`.l[k="${k}"].k`, k)
    for (const [name, value] of Object.entries(fields)) leaves.set(`.l[k="${k}"].${name}`, value)
  }
  if (x) leaves.set('.x', JSON.stringify(x))
  return leaves
}

const differs = (model: Model, path: string, value: string) => model.live.get(path) !== value
const ownersOf = (model: Model, path: string, except?: string) =>
  [...model.owners].filter(([name, paths]) => name !== except && paths.has(path)).map(([name]) => name)

/** Returns the conflicts; changes `model` if there are none or they are overridden. */
function applyToModel(model: Model, manager: string, wanted: Leaves, force: boolean): string[] {
  const changed = [...wanted].filter(([path, value]) => differs(model, path, value)).map(([path]) => path)
  const conflicts = changed.flatMap(path => ownersOf(model, path, manager).map(owner => `${owner} ${path}`))
  if (conflicts.length > 0 && !force) return conflicts.sort()
  const before = model.owners.get(manager) ?? new Set()
  for (const [name, paths] of model.owners) if (name !== manager) for (const path of changed) paths.delete(path)
  for (const [path, value] of wanted) model.live.set(path, value)
  model.owners.set(manager, new Set(wanted.keys()))
  for (const path of before) if (!wanted.has(path) && ownersOf(model, path).length === 0) model.live.delete(path)
  return []
}

function updateModel(model: Model, manager: string, next: Leaves): void {
  const changed = [...next].filter(([path, value]) => differs(model, path, value)).map(([path]) => path)
  const removed = [...model.live.keys()].filter(path => !next.has(path))
  for (const [name, paths] of model.owners) for (const path of [...removed, ...(name === manager ? [] : changed)]) paths.delete(path)
  const mine = model.owners.get(manager) ?? new Set()
  for (const path of changed) mine.add(path)
  model.owners.set(manager, mine)
  model.live = next
}

const word = fc.constantFrom('1', '2')
const key = fc.constantFrom('p', 'q', 'r')
const body: fc.Arbitrary<Body> = fc.record(
  {
    m: fc.dictionary(key, word, { minKeys: 1, maxKeys: 3, noNullPrototype: true }),
    s: fc.uniqueArray(key, { minLength: 1, maxLength: 3 }),
    l: fc.uniqueArray(fc.record({ k: key, a: word, b: word }, { requiredKeys: ['k'] }), {
      minLength: 1,
      maxLength: 3,
      selector: ({ k }) => k,
    }),
    x: fc.array(word, { minLength: 1, maxLength: 2 }),
  },
  { requiredKeys: [] },
)
const step = fc.oneof(
  fc.record({ op: fc.constant('apply' as const), who: fc.constantFrom('a', 'b', 'c'), body, force: fc.boolean() }),
  fc.record({ op: fc.constant('update' as const), who: fc.constantFrom('u', 'v'), body, force: fc.constant(false) }),
)

test('agrees with a naive model on the owner of every field', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), steps => {
      const model: Model = { live: new Map(), owners: new Map() }
      // An object without any owner is not tracked, so this manager always owns a field.
      const permanent = { live: undefined, manager: 'permanent', force: false, schema, apiVersion: 'v1', nowMs: 0 }
      let live = applyServerSide({ ...permanent, applied: { metadata: { name: 'n' }, keep: 'this' } }).object
      for (const [at, { op, who, body: sent, force }] of steps.entries()) {
        const common = { manager: who, schema, apiVersion: 'v1', nowMs: at * 1_000 }
        if (op === 'apply') {
          const result = applyServerSide({ ...common, force, live, applied: { metadata: { name: 'n' }, ...sent } as JsonObject })
          const conflicts = result.conflicts.map(({ manager, field }) => `${JSON.parse(manager.replace(/ using.*/, ''))} ${field}`)
          assert.deepEqual(conflicts.sort(), applyToModel(model, who, flatten(sent), force), `conflicts of step ${at}`)
          if (conflicts.length === 0) live = result.object
        } else {
          const managedFields = trackUpdate({ ...common, before: live, after: { ...sent, keep: 'this', metadata: { name: 'n' } } })
          live = { ...(sent as JsonObject), keep: 'this', metadata: { name: 'n', managedFields: managedFields as unknown as Json } }
          updateModel(model, who, flatten(sent))
        }
        // The owner of the key of an item removed it while another manager owns a field: validation rejects that.
        if (hasItemWithoutKey(model.live)) return
        const { metadata, ...rest } = live
        assert.deepEqual(sorted(flatten(rest as Body)), sorted(model.live), `the object after step ${at}`)
        const entries = ((metadata as JsonObject | undefined)?.managedFields ?? []) as unknown as ManagedFieldsEntry[]
        const owned = entries.map(entry => [entry.manager!, pathsOf(entry.fieldsV1 as JsonObject).filter(isLeaf)] as const)
        assert.deepEqual(bySet(owned), bySet([...model.owners].map(([name, paths]) => [name, [...paths]])), `the owners after step ${at}`)
      }
    }),
    { numRuns: Number(process.env.OARLOCK_TEST_RUNS ?? 500) },
  )
})

/** Excludes the containers `.m`, `.s`, `.l` and the items of `.l`. */
const isLeaf = (path: string) => !/^\.(keep|[msl])$|^\.l\[[^\]]*\]$/.test(path)
const sorted = (leaves: Leaves) => [...leaves].sort(([a], [b]) => (a < b ? -1 : 1))
const bySet = (owners: (readonly [string, string[]])[]) =>
  owners
    .filter(([, paths]) => paths.length > 0)
    .map(([name, paths]) => `${name}: ${paths.toSorted().join(' ')}`)
    .sort()

function hasItemWithoutKey(leaves: Leaves): boolean {
  return [...leaves.keys()].some(path => path.startsWith('.l[') && !leaves.has(path.replace(/\].*$/, '].k')))
}
