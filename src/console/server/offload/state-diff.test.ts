import { deepEqual, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { diffStates } from './state-diff.ts'

type Instance = { readonly attributes: object; readonly sensitive?: unknown[]; readonly key?: string | number }
const terraform = (resources: Readonly<Record<string, Instance[]>>, outputs: object = {}) =>
  JSON.stringify({
    version: 4,
    terraform_version: '1.12.6',
    serial: 1,
    lineage: 'a',
    outputs,
    resources: Object.entries(resources).map(([address, instances]) => {
      const [type, name] = address.split('.')
      return {
        ...{ mode: 'managed', type, name, provider: 'provider["registry.terraform.io/a/b"]' },
        instances: instances.map(({ attributes, sensitive = [], key }) => ({
          attributes,
          sensitive_attributes: sensitive,
          index_key: key,
        })),
      }
    }),
  })
const changed = (address: string, attributes: object[]) => ({ address, change: 'changed', attributes, moreAttributes: 0 })

test('resources that are added, removed, changed and unchanged are found by their addresses', () => {
  const from = terraform({
    'a.kept': [{ attributes: { x: 1 } }],
    'a.gone': [{ attributes: {} }],
    'a.many': [{ attributes: { x: 1 }, key: 'k' }],
  })
  const to = terraform({
    'a.kept': [{ attributes: { x: 1 } }],
    'a.new': [{ attributes: {} }],
    'a.many': [{ attributes: { x: 2 }, key: 'k' }],
  })
  const { resources, unchanged } = diffStates(from, to, { withValues: false })
  deepEqual(
    resources.map(({ address, change }) => [address, change]),
    [
      ['a.gone', 'removed'],
      ['a.many["k"]', 'changed'],
      ['a.new', 'added'],
    ],
  )
  deepEqual(unchanged, 1)
})

test('values are part of the difference only when they are asked for, and sensitive ones never are', () => {
  const sensitive = [
    [{ type: 'get_attr', value: 'login' }],
    [
      { type: 'get_attr', value: 'keys' },
      { type: 'index', value: { value: 0, type: 'number' } },
    ],
  ]
  const of = (value: string) => ({
    attributes: { size: value, login: { password: value }, loginName: value, keys: [value, value] },
    sensitive,
  })
  const [from, to] = [terraform({ 'a.b': [of('old')] }), terraform({ 'a.b': [of('new')] })]
  const hidden = { hidden: true }
  const shown = { from: { value: 'old' }, to: { value: 'new' } }
  deepEqual(diffStates(from, to, { withValues: true }).resources, [
    changed('a.b', [
      { path: 'keys[0]', from: hidden, to: hidden },
      { path: 'keys[1]', ...shown },
      { path: 'login', from: hidden, to: hidden },
      { path: 'loginName', ...shown },
      { path: 'size', ...shown },
    ]),
  ])
  deepEqual(
    JSON.stringify(diffStates(from, to, { withValues: false })).match(/old|new/g),
    null,
    'without withValues there is no value in it',
  )
})

test('what is sensitive in an attribute that is stored with its type is hidden, with the names in it', () => {
  const of = (value: string) => {
    const input = {
      value: { marker: value, login: { [value]: 1 } },
      type: ['object', { marker: 'string', login: ['object', { [value]: 'number' }] }],
    }
    const path = (name: string) => ['input', name].map(step => ({ type: 'get_attr', value: step }))
    return terraform({ 'a.b': [{ attributes: { input }, sensitive: [path('marker'), path('login')] }] })
  }
  const hidden = { from: { hidden: true }, to: { hidden: true } }
  deepEqual(diffStates(of('old'), of('new'), { withValues: true }).resources, [
    changed('a.b', [
      { path: 'input.type', ...hidden },
      { path: 'input.value.login', ...hidden },
      { path: 'input.value.marker', ...hidden },
    ]),
  ])
})

test('a state of an engine that does not record what providers mark as sensitive differs by names only', () => {
  const of = (value: string) => terraform({ 'a.b': [{ attributes: { password: { a: value } } }] }).replace('1.12.6', '1.7.5')
  const hidden = { hidden: true }
  deepEqual(diffStates(of('old'), of('new'), { withValues: true }).resources, [
    changed('a.b', [{ path: 'password', from: hidden, to: hidden }]),
  ])
})

test('outputs that are added, changed and sensitive are named', () => {
  const from = terraform({}, { url: { value: 'a' }, token: { value: 's1', sensitive: true } })
  const to = terraform({}, { url: { value: 'b' }, token: { value: 's2', sensitive: true }, extra: { value: [1] } })
  deepEqual(diffStates(from, to, { withValues: true }).outputs, [
    { path: 'extra', to: { value: [1] } },
    { path: 'token', from: { hidden: true }, to: { hidden: true } },
    { path: 'url', from: { value: 'a' }, to: { value: 'b' } },
  ])
})

test('secrets of Pulumi are hidden, and its outputs are those of the root', () => {
  const secret = (ciphertext: string) => ({ '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', ciphertext })
  const state = (size: number, ciphertext: string) =>
    JSON.stringify({
      version: 3,
      deployment: {
        resources: [
          { urn: 'urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev', type: 'pulumi:pulumi:Stack', outputs: { size } },
          { urn: 'urn:pulumi:dev::shop::aws:s3:Bucket::b', type: 'aws:s3:Bucket', id: 'b-1', outputs: { size, key: secret(ciphertext) } },
        ],
      },
    })
  const diff = diffStates(state(1, 'c1'), state(2, 'c2'), { withValues: true })
  deepEqual(diff.outputs, [{ path: 'size', from: { value: 1 }, to: { value: 2 } }])
  deepEqual(diff.resources, [
    changed('urn:pulumi:dev::shop::aws:s3:Bucket::b', [
      { path: 'key', from: { hidden: true }, to: { hidden: true } },
      { path: 'size', from: { value: 1 }, to: { value: 2 } },
    ]),
  ])
})

test('an inventory differs by its objects, and a state from nothing by all it has', () => {
  const objects = (...names: string[]) =>
    JSON.stringify({
      engine: 'manifests',
      objects: names.map(name => ({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'a', name, uid: name })),
    })
  deepEqual(
    diffStates(objects('x', 'y'), objects('y', 'z'), { withValues: false }).resources.map(({ address, change }) => `${change} ${address}`),
    ['removed ConfigMap a/x', 'added ConfigMap a/z'],
  )
  deepEqual(diffStates('', objects('x'), { withValues: false }).resources.length, 1)
})

test('a small state with long paths around many values is not divided, and hidden', () => {
  const nested = (last: number) => JSON.parse(`${'{"long":'.repeat(2_000)}[${'1,'.repeat(100_000)}${last}]${'}'.repeat(2_000)}`) as object
  const from = terraform({ 'a.b': [{ attributes: nested(1) }] })
  const { resources } = diffStates(from, terraform({ 'a.b': [{ attributes: nested(2) }] }), { withValues: true })
  deepEqual(
    resources[0]?.attributes.map(({ from: old, to }) => [old, to]),
    [[{ hidden: true }, { hidden: true }]],
  )
})

test('many sensitive attributes take no longer than others', () => {
  const values = (first: number) => ({ a: Array.from({ length: 50_000 }, (_, index) => first + index) })
  const sensitive = Array.from({ length: 50_000 }, (_, index) => [
    { type: 'get_attr', value: 'a' },
    { type: 'index', value: { value: index, type: 'number' } },
  ])
  const of = (first: number) => terraform({ 'a.b': [{ attributes: values(first), sensitive }] })
  const startMs = performance.now()
  const { resources } = diffStates(of(0), of(1), { withValues: true })
  // 0.2 s; comparing each value with each of these paths takes 15 s.
  ok(performance.now() - startMs < 5_000)
  deepEqual(resources[0]?.attributes[0], { path: 'a[0]', from: { hidden: true }, to: { hidden: true } })
})

test('a resource with more sensitive paths than are read is hidden as a whole', () => {
  const marks = (count: number) => Array.from({ length: count }, () => [{ type: 'get_attr', value: 'other' }])
  const of = (value: string, count: number) => terraform({ 'a.b': [{ attributes: { size: value }, sensitive: marks(count) }] })
  const sizes = (count: number) => diffStates(of('old', count), of('new', count), { withValues: true }).resources[0]?.attributes
  deepEqual(sizes(100_000), [{ path: 'size', from: { value: 'old' }, to: { value: 'new' } }])
  deepEqual(sizes(100_001), [{ path: 'size', from: { hidden: true }, to: { hidden: true } }])
})
