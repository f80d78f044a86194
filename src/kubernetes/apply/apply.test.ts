import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { equalJson } from '../object/json.ts'
import type { Json, JsonObject, ManagedFieldsEntry } from '../object/object.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { below, hasMember } from './field-set.ts'
import { applyServerSide, conflictError, trackUpdate } from './index.ts'

const apiVersion = 'x.io/v1'
const base = { manager: 'a', force: false, schema: undefined, apiVersion, nowMs: Date.parse('2026-03-01T10:00:00Z') }
const make = (spec: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  apiVersion,
  kind: 'X',
  metadata: { name: 'n', ...metadata },
  spec,
})
const entriesOf = (object: JsonObject) => (object.metadata as JsonObject).managedFields as unknown as ManagedFieldsEntry[]

test('a first apply creates the object and owns exactly what was applied', () => {
  const { object, conflicts } = applyServerSide({ ...base, live: undefined, applied: make({ a: 1 }, { labels: { l: '1' } }) })
  assert.deepEqual(conflicts, [])
  assert.deepEqual(object.spec, { a: 1 })
  assert.deepEqual(entriesOf(object), [
    {
      manager: 'a',
      operation: 'Apply',
      apiVersion,
      time: '2026-03-01T10:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:metadata': { 'f:labels': { 'f:l': {} } }, 'f:spec': { '.': {}, 'f:a': {} } },
    },
  ])
})

test('applying the same configuration again returns the same object, so that nothing is written', () => {
  const applied = make({ a: 1, list: [1, 2], empty: {} })
  const { object } = applyServerSide({ ...base, live: undefined, applied })
  const stored = { ...object, metadata: { ...(object.metadata as JsonObject), uid: 'u', resourceVersion: '7' } }
  assert.equal(applyServerSide({ ...base, live: stored, applied: structuredClone(applied), nowMs: base.nowMs + 60_000 }).object, stored)
})

test('a field of another manager is a conflict, worded as in Kubernetes; an equal value is shared', () => {
  const before = undefined
  const after = make({ replicas: 1, image: 'a' })
  const live = {
    ...after,
    metadata: { name: 'n', managedFields: trackUpdate({ ...base, manager: 'kubectl', before, after }) as unknown as Json },
  }
  const one = applyServerSide({ ...base, live, applied: make({ replicas: 2, image: 'a' }) })
  const error = conflictError(one.conflicts)
  assert.equal(error.code, 409)
  assert.equal(error.reason, 'Conflict')
  assert.equal(error.message, 'Apply failed with 1 conflict: conflict with "kubectl" using x.io/v1: .spec.replicas')
  assert.deepEqual(error.details?.causes, [
    { reason: 'FieldManagerConflict', message: 'conflict with "kubectl" using x.io/v1', field: '.spec.replicas' },
  ])
  const two = applyServerSide({ ...base, live, applied: make({ replicas: 2, image: 'b' }) })
  assert.equal(
    conflictError(two.conflicts).message,
    'Apply failed with 2 conflicts: conflicts with "kubectl" using x.io/v1:\n- .spec.image\n- .spec.replicas',
  )
  const shared = applyServerSide({ ...base, live, applied: make({ image: 'a' }) })
  assert.deepEqual(shared.conflicts, [])
  assert.equal(entriesOf(shared.object).length, 2)
  const forced = applyServerSide({ ...base, live, force: true, applied: make({ replicas: 2 }) })
  assert.deepEqual(forced.object.spec, { replicas: 2, image: 'a' })
  assert.deepEqual(entriesOf(forced.object)[1]?.fieldsV1, { 'f:spec': { '.': {}, 'f:image': {} } })
})

test('removes fields that are no longer applied unless another manager owns them; never removes name and uid', () => {
  const first = applyServerSide({ ...base, live: undefined, applied: make({ a: 1, b: { c: 1, d: 1 } }, { labels: { l: '1' } }) }).object
  const live = { ...first, metadata: { ...(first.metadata as JsonObject), uid: 'u', creationTimestamp: 't' } }
  const both = applyServerSide({ ...base, manager: 'b', live, applied: make({ b: { d: 1 } }) }).object
  const { object } = applyServerSide({ ...base, live: both, applied: make({}) })
  assert.deepEqual(object.spec, { b: { d: 1 } })
  const { managedFields: _, ...metadata } = object.metadata as JsonObject
  assert.deepEqual(metadata, { name: 'n', uid: 'u', creationTimestamp: 't' })
})

test('many fields that are no longer applied are removed, the others and their owners stay', () => {
  const fields = (names: number[]) => make({ map: Object.fromEntries(names.map(name => [`k${name}`, 1])) })
  const every = Array.from({ length: 60 }, (_, index) => index)
  const [kept, shared] = [every.slice(0, 20), every.slice(10, 30)]
  const first = applyServerSide({ ...base, live: undefined, applied: fields(every) }).object
  const both = applyServerSide({ ...base, manager: 'b', live: first, applied: fields(shared) }).object
  const { object } = applyServerSide({ ...base, live: both, applied: fields(kept) })
  assert.deepEqual(object.spec, fields(every.slice(0, 30)).spec)
  const taken = applyServerSide({
    ...base,
    manager: 'c',
    force: true,
    live: both,
    applied: make({ map: Object.fromEntries(every.slice(5).map(name => [`k${name}`, 2])) }),
  })
  assert.deepEqual(
    entriesOf(taken.object).map(({ manager, fieldsV1 }) => [
      manager,
      Object.keys(((fieldsV1 as JsonObject)['f:spec'] as JsonObject)['f:map'] as JsonObject).length,
    ]),
    [
      ['a', 6],
      ['b', 0],
      ['c', 56],
    ],
  )
})

test('finalizers and owner references are merged by item', () => {
  const live = applyServerSide({ ...base, live: undefined, applied: make({}, { finalizers: ['x/a'] }) }).object
  const { object, conflicts } = applyServerSide({ ...base, manager: 'b', live, applied: make({}, { finalizers: ['x/b'] }) })
  assert.deepEqual(conflicts, [])
  assert.deepEqual((object.metadata as JsonObject).finalizers, ['x/a', 'x/b'])
})

test('an object without tracked managers belongs to before-first-apply', () => {
  const { conflicts } = applyServerSide({ ...base, live: make({ a: 1 }), applied: make({ a: 2 }) })
  assert.deepEqual(conflicts, [{ manager: '"before-first-apply" using x.io/v1', field: '.spec.a' }])
})

test('fields that an endpoint may not change are removed from the configuration', () => {
  const live = applyServerSide({ ...base, live: undefined, applied: make({ a: 1 }) }).object
  const applied = { ...make({ a: 2 }, { labels: { l: '1' } }), status: { phase: 'Ready' } }
  const { object, conflicts } = applyServerSide({ ...base, live, applied, subresource: 'status', resetFields: ['metadata', 'spec'] })
  assert.deepEqual(conflicts, [])
  assert.deepEqual([object.spec, object.status], [{ a: 1 }, { phase: 'Ready' }])
  assert.deepEqual(
    entriesOf(object).map(entry => [entry.subresource, entry.fieldsV1]),
    [
      [undefined, { 'f:spec': { '.': {}, 'f:a': {} } }],
      ['status', { 'f:status': { '.': {}, 'f:phase': {} } }],
    ],
  )
})

test('rejects an invalid configuration', () => {
  const sets: StructuralSchema = {
    type: 'object',
    properties: {
      spec: { type: 'object', properties: { l: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' } } },
    },
  }
  for (const [applied, message] of [
    [make({}, { managedFields: [{}] }), /managedFields must be nil/],
    [{ ...make({}), apiVersion: 'x.io/v2' }, /Incorrect version specified in apply patch/],
    [make({ l: ['a', 'a'] }), /\.spec\.l: duplicate entries for key "a"/],
    [make({ l: [{}] }), /\.spec\.l: element 0/],
  ] as const) {
    assert.throws(() => applyServerSide({ ...base, schema: sets, live: undefined, applied }), message)
  }
})

test('an update gives changed fields to its manager, removed fields to none, and returns the same list if nothing changed', () => {
  const before = applyServerSide({ ...base, live: undefined, applied: make({ a: 1, b: 1, c: 1 }) }).object
  const track = (after: JsonObject, manager = 'u') => trackUpdate({ ...base, manager, before, after, nowMs: base.nowMs + 1_000 })
  assert.equal(track({ ...before, metadata: { ...(before.metadata as JsonObject), resourceVersion: '2' } }), entriesOf(before))
  const entries = track({ ...before, spec: { a: 1, b: 2 } })
  assert.deepEqual(
    entries.map(entry => [entry.manager, entry.operation, entry.fieldsV1]),
    [
      ['a', 'Apply', { 'f:spec': { '.': {}, 'f:a': {} } }],
      ['u', 'Update', { 'f:spec': { 'f:b': {} } }],
    ],
  )
  assert.equal(entries[1]?.time, '2026-03-01T10:00:01Z')
})

test('an update with an empty list stops tracking, invalid entries are ignored, valid ones are stored', () => {
  const before = applyServerSide({ ...base, live: undefined, applied: make({ a: 1 }) }).object
  const track = (managedFields: Json) => trackUpdate({ ...base, before, after: make({ a: 1 }, { managedFields }) })
  assert.deepEqual(track([]), [])
  assert.deepEqual(track([{}]), [])
  assert.equal(track([{ operation: 'Steal' }]), entriesOf(before))
  assert.equal(track([{ manager: 'm', operation: 'Update', apiVersion, fieldsType: 'FieldsV1', fieldsV1: { __x: 1 } }]), entriesOf(before))
  const own = [{ manager: 'm', operation: 'Update', apiVersion, fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': { 'f:a': {} } } }]
  assert.deepEqual(track(own), own)
})

test('invariant 10: the oldest of many updaters are merged into one', () => {
  let live = applyServerSide({ ...base, live: undefined, applied: make({ a: 0 }) }).object
  for (let index = 0; index < 30; index++) {
    const after = { ...live, spec: { ...(live.spec as JsonObject), [`f${index}`]: index } }
    const managedFields = trackUpdate({ ...base, manager: `u${index}`, before: live, after, nowMs: base.nowMs + index * 1_000 })
    live = { ...after, metadata: { name: 'n', managedFields: managedFields as unknown as Json } }
  }
  const entries = entriesOf(live)
  assert.equal(entries.filter(entry => entry.operation === 'Update').length, 10)
  const ancient = entries.find(entry => entry.manager === 'ancient-changes')
  for (let index = 0; index < 21; index++) assert.equal(hasMember(below(ancient?.fieldsV1, 'f:spec'), `f:f${index}`), true)
})

const { value } = fc.letrec<{ value: Json }>(tie => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Json>(1, 2, 'x', true),
    fc.dictionary(fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor'), tie('value'), { maxKeys: 3 }) as fc.Arbitrary<Json>,
    fc.array(tie('value'), { maxLength: 2 }) as fc.Arbitrary<Json>,
  ),
}))
const spec = fc.dictionary(fc.constantFrom('a', 'b', 'c', '__proto__'), value, { maxKeys: 3 }) as fc.Arbitrary<JsonObject>

test('every applied leaf is owned by its manager and has its value; applying twice changes nothing', () => {
  const isOwned = (set: JsonObject | undefined, config: Json): boolean => {
    if (typeof config !== 'object' || config === null || Array.isArray(config)) return true
    return Object.entries(config).every(([name, child]) => {
      const isLeaf = typeof child !== 'object' || child === null || Array.isArray(child) || Object.keys(child).length === 0
      return isLeaf ? hasMember(set, `f:${name}`) : isOwned(below(set, `f:${name}`), child)
    })
  }
  const holds = (live: Json | undefined, config: Json): boolean => {
    if (typeof config !== 'object' || config === null || Array.isArray(config)) return equalJson(live, config)
    return Object.entries(config).every(([name, child]) => Object.hasOwn(live as object, name) && holds((live as JsonObject)[name], child))
  }
  const step = fc.record({ manager: fc.constantFrom('a', 'b'), force: fc.boolean(), spec })
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), steps => {
      let live: JsonObject | undefined
      for (const [index, { manager, force, spec: wanted }] of steps.entries()) {
        const input = { ...base, manager, force, applied: make(wanted), nowMs: base.nowMs + index * 1_000 }
        const before = JSON.stringify([live, input.applied])
        const result = applyServerSide({ ...input, live })
        assert.equal(JSON.stringify([live, input.applied]), before)
        if (result.conflicts.length > 0) continue
        live = result.object
        const own = entriesOf(live).find(entry => entry.manager === manager)
        assert.equal(isOwned(own?.fieldsV1, { spec: wanted }), true)
        assert.equal(holds(live, { spec: wanted }), true)
        assert.equal(applyServerSide({ ...input, live, nowMs: input.nowMs + 500_000 }).object, live)
      }
    }),
  )
})
