import { deepStrictEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import type { Deployment, Resource, UntypedDeployment } from './deployment.ts'
import { parseJournalEntry } from './journal-entry.ts'
import { type ReplayResult, replayJournal } from './replay-journal.ts'

const manifest = { time: '2026-01-01T00:00:00Z', magic: '', version: '' }
const urn = (name: string, type = 'a:b:C') => `urn:pulumi:dev::app::${type}::${name}`
const resource = (name: string, more: Partial<Resource> = {}): Resource => ({ urn: urn(name), custom: true, type: 'a:b:C', ...more })
const base = (...resources: Resource[]): UntypedDeployment => ({ version: 3, deployment: { manifest, resources, metadata: {} } })

let sequence = 0
const entry = (kind: number, operationID: number, more: object = {}) => ({
  ...{ version: 1, kind, sequenceID: ++sequence, operationID, removeOld: null, removeNew: null },
  ...more,
})
const begin = (id: number, type?: string, state?: Resource) => entry(0, id, type ? { operation: { type, resource: state } } : {})
const success = (id: number, more: object) => entry(1, id, more)

const replay = (from: UntypedDeployment | undefined, entries: object[]): ReplayResult =>
  replayJournal(
    from,
    entries.map(value => parseJournalEntry(value as Record<string, unknown>)),
    { manifest },
  )
function deploymentOf(result: ReplayResult): Deployment {
  if (result.kind !== 'deployment') throw new Error(`${result.kind}: ${result.message}`)
  return result.result.deployment
}
const names = (result: ReplayResult) =>
  (deploymentOf(result).resources ?? []).map(({ urn: all, delete: isDelete, pendingReplacement, rev }) =>
    [all.split('::')[3], rev, isDelete && 'delete', pendingReplacement && 'pendingReplacement'].filter(Boolean).join(' '),
  )

const a = resource('a')
const b = resource('b')

type Case = { name: string; isFirst?: boolean; entries: object[]; want: string[] }
const cases: Case[] = [
  { name: 'a resource that the update has not visited stays', entries: [begin(1)], want: ['a', 'b'] },
  { name: 'a created resource comes before the rest of the base', entries: [success(1, { state: resource('c') })], want: ['c', 'a', 'b'] },
  {
    name: 'a resource that is kept replaces its base',
    entries: [success(1, { state: resource('b', { rev: '2' }), removeOld: 1 })],
    want: ['b 2', 'a'],
  },
  { name: 'a deleted resource is removed', entries: [success(1, { removeOld: 0 })], want: ['b'] },
  { name: 'a failed operation changes nothing', entries: [entry(2, 1, { state: resource('c'), removeOld: 0 })], want: ['a', 'b'] },
  {
    name: 'outputs replace a resource of this update in its position',
    entries: [
      success(1, { state: a, removeOld: 0 }),
      success(2, { state: b, removeOld: 1 }),
      entry(4, 3, { state: resource('a', { rev: '2' }), removeNew: 1 }),
    ],
    want: ['a 2', 'b'],
  },
  {
    name: 'outputs replace a resource of the base in its position',
    entries: [entry(4, 3, { state: resource('a', { rev: '2' }), removeOld: 0 })],
    want: ['a 2', 'b'],
  },
  {
    name: 'a resource of this update that is replaced is in the state once',
    entries: [success(1, { state: a, removeOld: 0 }), success(2, { state: resource('a', { rev: '2' }), removeNew: 1 })],
    want: ['a 2', 'b'],
  },
  {
    name: 'a resource that is replaced is marked for deletion until it is deleted',
    entries: [success(1, { state: resource('a', { rev: '2' }), deleteOld: 0 })],
    want: ['a 2', 'a delete', 'b'],
  },
  {
    name: 'a resource of this update that is replaced is marked for deletion',
    entries: [success(1, { state: resource('c') }), success(2, { state: resource('c', { rev: '2' }), deleteNew: 1 })],
    want: ['c delete', 'c 2', 'a', 'b'],
  },
  {
    name: 'a mark for deletion remains when outputs arrive later',
    entries: [
      success(1, { state: resource('a', { rev: '2' }), deleteOld: 0 }),
      entry(4, 2, { state: resource('a', { rev: '1' }), removeOld: 0 }),
    ],
    want: ['a 2', 'a 1 delete', 'b'],
  },
  {
    name: 'a resource that is deleted before its replacement is pending replacement',
    entries: [success(1, { pendingReplacementOld: 0 })],
    want: ['a pendingReplacement', 'b'],
  },
  {
    name: 'a resource of this update is pending replacement',
    entries: [success(1, { state: resource('c') }), success(2, { pendingReplacementNew: 1 })],
    want: ['c pendingReplacement', 'a', 'b'],
  },
  {
    name: 'a refreshed resource keeps its position, and one that is gone is removed',
    entries: [
      entry(3, 1, { state: resource('b', { rev: '2' }), removeOld: 1, isRefresh: true }),
      entry(3, 2, { removeOld: 0, isRefresh: true }),
    ],
    want: ['b 2'],
  },
  {
    name: 'a refresh of a resource of this update replaces or removes it',
    entries: [
      ...[success(1, { state: resource('c') }), success(2, { state: resource('d') })],
      ...[entry(3, 3, { state: resource('c', { rev: '2' }), removeNew: 1 }), entry(3, 4, { removeNew: 2 })],
    ],
    want: ['c 2', 'a', 'b'],
  },
  {
    name: 'a step after a failed refresh replaces the resource that was not refreshed',
    entries: [entry(2, 1, { state: a, removeOld: 0, isRefresh: true }), success(2, { state: resource('a', { rev: '2' }), removeNew: 1 })],
    want: ['a 2', 'b'],
  },
  {
    name: 'after a rebuilt base, indexes refer to what the refresh has left',
    entries: [
      entry(3, 1, { removeOld: 0, isRefresh: true }),
      entry(7, 0),
      success(2, { state: resource('b', { rev: '2' }), removeOld: 0 }),
    ],
    want: ['b 2'],
  },
  {
    name: 'a written base replaces the base, and indexes refer to it',
    entries: [begin(1), entry(5, 0, { newSnapshot: { manifest, resources: [b, a] } }), success(2, { removeOld: 0 })],
    want: ['a'],
  },
  { name: 'a first update has no base', isFirst: true, entries: [success(1, { state: a })], want: ['a'] },
]
for (const { name, isFirst, entries, want } of cases)
  test(name, () => deepStrictEqual(names(replay(isFirst ? undefined : base(a, b), entries)), want))

test('entries are applied in the order of their sequence ids, whatever the order of arrival', () => {
  const entries = [success(1, { state: a, removeOld: 0 }), success(2, { state: b, removeOld: 1 }), success(3, { removeNew: 1 })]
  deepStrictEqual(names(replay(base(a, b), entries.toReversed())), ['b'])
})

test('what has begun and not ended is pending, and of the base only creations', () => {
  const creating = (name: string) => ({ type: 'creating', resource: resource(name) })
  const from = base(a)
  from.deployment!.pending_operations = [creating('old'), { type: 'updating', resource: a }]
  const entries = [begin(1, 'creating', resource('c')), begin(2, 'updating', a), begin(3), entry(2, 2, {}), begin(4, 'deleting', b)]
  const result = replay(from, entries)
  const want = [creating('c'), { type: 'deleting', resource: b }, creating('old')]
  deepStrictEqual(result.kind === 'deployment' && result.pending, want)
  deepStrictEqual(deploymentOf(result).pending_operations, want)
})

test('after a refresh nothing refers to a resource that is gone', () => {
  const child = resource('child', {
    ...{ parent: urn('a'), dependencies: [urn('a'), urn('b')], deletedWith: urn('a'), replaceWith: [urn('a')] },
    propertyDependencies: { x: [urn('a')], y: [urn('b')] },
  })
  const result = replay(base(a, b, child), [entry(3, 1, { removeOld: 0, isRefresh: true })])
  deepStrictEqual(deploymentOf(result).resources?.[1], {
    ...{
      urn: urn('child'),
      custom: true,
      type: 'a:b:C',
      dependencies: [urn('b')],
      propertyDependencies: { y: [urn('b')] },
      replaceWith: [],
    },
  })
  // Without a refresh the references are the engine's.
  deepStrictEqual(deploymentOf(replay(base(a, b, child), [success(1, { removeOld: 0 })])).resources?.[1], child)
})

test('references to a renamed resource follow it, and so do its children', () => {
  const parent = resource('new', { urn: urn('new', 'a:b:D'), aliases: [urn('old')] })
  const from = base(resource('old'), resource('x', { urn: urn('x', 'a:b:C$k:l:M'), parent: urn('old') }))
  const provider = resource('y', {
    provider: `${urn('old')}::id-1`,
    dependencies: [urn('x', 'a:b:C$k:l:M')],
    propertyDependencies: { p: [urn('old')] },
  })
  from.deployment!.resources!.push(provider)
  const result = deploymentOf(replay(from, [success(1, { state: parent, removeOld: 0 })])).resources
  deepStrictEqual(
    result?.map(({ urn: all }) => all),
    [urn('new', 'a:b:D'), urn('x', 'a:b:D$k:l:M'), urn('y')],
  )
  equal(result?.[0]?.aliases, undefined)
  equal(result?.[1]?.parent, urn('new', 'a:b:D'))
  const { provider: reference, dependencies, propertyDependencies } = (result ?? [])[2] as Resource
  deepStrictEqual(
    [reference, dependencies, propertyDependencies],
    [...[`${urn('new', 'a:b:D')}::id-1`, [urn('x', 'a:b:D$k:l:M')], { p: [urn('new', 'a:b:D')] }]],
  )
})

test('secrets manager, snippets, extensions and unknown fields are in the result', () => {
  const from = base(a)
  Object.assign(from.deployment!, { extensions: { e1: { from: 'base' } }, future: { kept: true } })
  const snippet = { uuid: 'u', references: {} }
  const provider = { type: 'service', state: { key: '1' } }
  const entries = [
    ...[entry(6, 0, { secretsProvider: provider }), entry(9, 0, { snippets: [snippet] })],
    ...[entry(8, 1, { extensionRef: 'e1', extension: { from: 'update' } }), entry(8, 2, { extensionRef: 'e2', extension: {} })],
  ]
  const deployment = deploymentOf(replay(from, entries))
  deepStrictEqual(deployment.secrets_providers, provider)
  deepStrictEqual(deployment.snippets, [snippet])
  deepStrictEqual(deployment.extensions, { e1: { from: 'base' }, e2: {} })
  deepStrictEqual(deployment.future, { kept: true })
  equal('snippets' in deploymentOf(replay(from, [...entries, entry(9, 0)])), false)
})

test('a state that needs a feature has version 4 and names it', () => {
  const versions = (result: ReplayResult) => result.kind === 'deployment' && [result.result.version, result.result.features]
  deepStrictEqual(versions(replay(base(a), [])), [3, undefined])
  deepStrictEqual(versions(replay(base(a), [success(1, { state: resource('c', { taint: true }) })])), [4, ['taint']])
  deepStrictEqual(versions(replay(base(a), [success(1, { state: b, requiresByteString: true })])), [4, ['byteString']])
  deepStrictEqual(versions(replay({ ...base(a), version: 4, features: ['taint', 'of-2027'] }, [])), [4, ['of-2027']])
})

for (const { name, entries, want } of [
  { name: 'an unknown kind', entries: [entry(10, 1)], want: /entry kind 10/ },
  { name: 'an unknown version', entries: [success(1, { version: 2 })], want: /version 2 of the journal/ },
  { name: 'an unknown field', entries: [success(1, { moveOld: 1 })], want: /field "moveOld" of an entry of kind Success/ },
  { name: 'a resource without a URN', entries: [success(1, { state: { type: 't' } })], want: /state has no URN/ },
  { name: 'an index beyond the base', entries: [success(1, { removeOld: 2 })], want: /resource 2 of the state, which has 2/ },
  { name: 'an unknown operation', entries: [success(1, { removeNew: 9 })], want: /operation 9, which is not in the journal/ },
  {
    name: 'the name of a property of lists as its kind',
    entries: [{ ...success(1, {}), kind: 'length' }],
    want: /unknown entry kind length/,
  },
  { name: 'an index that is no number', entries: [success(1, { removeOld: '0' })], want: /removeOld is not a whole number/ },
  {
    name: 'a base that is written after changes',
    entries: [success(1, { removeOld: 0 }), entry(5, 0, { newSnapshot: {} })],
    want: /follows changes/,
  },
  {
    name: 'two resources with one alias',
    entries: [1, 2].map(id => success(id, { state: resource(`r${id}`, { aliases: [urn('x')] }) })),
    want: /same alias/,
  },
])
  test(`a journal with ${name} has no result`, () => {
    const result = replay(base(a, b), entries)
    match(result.kind === 'unreadable' ? result.message : 'a deployment', want)
  })

test('an unknown field that is null changes nothing', () => {
  deepStrictEqual(names(replay(base(a), [success(1, { future: null, removeOld: 0 })])), [])
})
