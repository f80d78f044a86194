import { deepEqual, equal, match } from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { makeDataDir, startTestServer, type TestServer } from '../../server.testing.ts'

let api: TestServer
before(async () => {
  api = await startTestServer()
})
after(() => api.close())

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

function definition(plural: string, spec: object) {
  const kind = plural[0]!.toUpperCase() + plural.slice(1)
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.crd.example.com` },
    spec: {
      group: 'crd.example.com',
      scope: 'Cluster',
      names: { plural, kind },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties: { spec } } } }],
    },
  }
}

const object = (plural: string, spec: unknown) => ({
  apiVersion: 'crd.example.com/v1',
  kind: plural[0]!.toUpperCase() + plural.slice(1),
  metadata: { name: 'a' },
  spec,
})

test('a kind is usable when the creation of its definition is answered: objects, validation rules, discovery', async () => {
  for (let round = 0; round < 20; round++) {
    const plural = `things${round}`
    const spec = { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self > 0', message: 'must be positive' }] }
    equal((await api.call(crds, { body: definition(plural, spec) })).code, 201)
    equal((await api.call(`/apis/crd.example.com/v1/${plural}`, { body: object(plural, 1) })).code, 201)
    const rejected = await api.call(`/apis/crd.example.com/v1/${plural}`, { body: object(plural, 0) })
    match(rejected.body.message ?? '', /must be positive/)
    const { body } = await api.call<{ resources: { name: string }[] }>('/apis/crd.example.com/v1')
    equal(body.resources.filter(({ name }) => name === plural).length, 1)
  }
})

test('a slow pattern of a definition does not block the server', async () => {
  const spec = { type: 'string', pattern: '^(a+)+$' }
  equal((await api.call(crds, { body: definition('patterns', spec) })).code, 201)
  const attack = api.call('/apis/crd.example.com/v1/patterns', { body: object('patterns', `${'a'.repeat(60)}!`) })
  equal((await api.call('/version')).code, 200)
  equal((await attack).code, 422)
})

test('an expensive validation rule of a definition does not block the server', async () => {
  const spec = {
    type: 'array',
    items: { type: 'integer' },
    'x-kubernetes-validations': [{ rule: 'self.all(a, self.all(b, self.all(c, a + b + c >= 0)))' }],
  }
  equal((await api.call(crds, { body: definition('loops', spec) })).code, 201)
  const numbers = Array.from({ length: 20_000 }, (_, index) => index)
  const { code, body } = await api.call('/apis/crd.example.com/v1/loops', { body: object('loops', numbers) })
  equal(code, 422)
  match(body.message ?? '', /actual cost limit exceeded/)
})

test('rejects hostile definitions', async () => {
  const rules = (list: unknown) => ({ type: 'object', 'x-kubernetes-validations': list })
  const rejections: unknown[] = []
  for (const [index, spec] of [
    rules('self'),
    rules([1]),
    rules([{ rule: 1 }]),
    rules([{ rule: `${'('.repeat(5_000)}true` }]),
    rules(Array.from({ length: 10_000 }, () => ({ rule: 'self == self && self == self' }))),
    { type: 'string', pattern: '(a{1000}){1000}' },
    { type: 'string', pattern: '(?=a)' },
    { type: 'object', properties: { a: rules([{ rule: 'true', fieldPath: `.${'a.'.repeat(10_000)}` }]) } },
  ].entries()) {
    rejections.push((await api.call(crds, { body: definition(`bad${index}`, spec) })).code)
  }
  deepEqual(rejections, Array(8).fill(422))
})

test('a default that was added to a definition applies to older objects, before and after a restart', async () => {
  const dataDir = makeDataDir()
  let server = await startTestServer({ dataDir })
  const restart = async () => {
    await server.close()
    server = await startTestServer({ dataDir })
  }
  const path = '/apis/crd.example.com/v1/boats'
  const crew = (extra: object) => definition('boats', { type: 'object', properties: { crew: { type: 'integer', ...extra } } })
  const specs = async () => {
    const { body } = await server.call(path)
    return Object.fromEntries(body.items.map(({ metadata, spec }) => [metadata.name, spec]))
  }
  const name = (is: string, spec: object) => ({ ...object('boats', spec), metadata: { name: is } })
  try {
    equal((await server.call(crds, { body: crew({}) })).code, 201)
    equal((await server.call(path, { body: name('old', {}) })).code, 201)
    const patch = { method: 'PATCH', type: 'application/merge-patch+json', body: { spec: crew({ default: 2 }).spec } }
    equal((await server.call(`${crds}/boats.crd.example.com`, patch)).code, 200)
    equal((await server.call(path, { body: name('new', {}) })).code, 201)
    deepEqual(await specs(), { new: { crew: 2 }, old: { crew: 2 } })
    await restart()
    deepEqual(await specs(), { new: { crew: 2 }, old: { crew: 2 } })
    const another = { method: 'PATCH', type: 'application/merge-patch+json', body: { spec: crew({ default: 3 }).spec } }
    equal((await server.call(`${crds}/boats.crd.example.com`, another)).code, 200)
    deepEqual(await specs(), { new: { crew: 2 }, old: { crew: 3 } })
    // A write starts from the object as it is read, and stores its defaults.
    const label = { method: 'PATCH', type: 'application/merge-patch+json', body: { metadata: { labels: { a: 'b' } } } }
    equal((await server.call(`${path}/old`, label)).code, 200)
    equal((await server.call(`${crds}/boats.crd.example.com`, patch)).code, 200)
    await restart()
    deepEqual(await specs(), { new: { crew: 2 }, old: { crew: 3 } })
  } finally {
    await server.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
