import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { configMap, configMapsPath, createNamespace, startTestServer, type TestServer } from './server.testing.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

describe('create, read, update, delete', () => {
  test('create sets the metadata, and get returns the same object', async () => {
    const { code, body } = await server.call(configMapsPath('default'), { body: configMap('first', { a: 'b' }) })
    assert.equal(code, 201)
    assert.match(body.metadata.uid, /^[0-9a-f-]{36}$/)
    assert.match(body.metadata.resourceVersion!, /^[0-9]+$/)
    assert.ok(Number(body.metadata.resourceVersion) < 2 ** 53)
    assert.equal(body.metadata.managedFields?.[0]?.manager, 'tester')
    assert.deepEqual((await server.call(configMapsPath('default', 'first'))).body, body)
  })

  test('text outside ASCII is returned unchanged', async () => {
    const data = { greeting: 'žluťoučký 🐎 \u2028 "quoted"' }
    await server.call(configMapsPath('default'), { body: configMap('unicode', data) })
    assert.deepEqual((await server.call(configMapsPath('default', 'unicode'))).body.data, data)
  })

  for (const { name, path, options, code, reason, message } of [
    {
      name: 'a second object of the same name',
      path: configMapsPath('default'),
      options: { body: configMap('first') },
      code: 409,
      reason: 'AlreadyExists',
      message: 'configmaps "first" already exists',
    },
    {
      name: 'an object that does not exist',
      path: configMapsPath('default', 'none'),
      code: 404,
      reason: 'NotFound',
      message: 'configmaps "none" not found',
    },
    {
      name: 'a namespace that does not exist',
      path: configMapsPath('nowhere'),
      options: { body: configMap('x') },
      code: 404,
      reason: 'NotFound',
      message: 'namespaces "nowhere" not found',
    },
    {
      name: 'a resource that is not served',
      path: '/apis/coordination.k8s.io/v9/things',
      code: 404,
      reason: 'NotFound',
      message: /could not find the requested resource/,
    },
    {
      name: 'invalid JSON',
      path: configMapsPath('default'),
      options: { body: '{"a":' },
      code: 400,
      reason: 'BadRequest',
      message: /not valid JSON/,
    },
    {
      name: 'an array instead of an object',
      path: configMapsPath('default'),
      options: { body: [] },
      code: 400,
      reason: 'BadRequest',
      message: /must be one ConfigMap object/,
    },
    {
      name: 'an object of another kind',
      path: configMapsPath('default'),
      options: { body: { ...configMap('x'), kind: 'Secret' } },
      code: 400,
      reason: 'BadRequest',
      message: /kind in the data \(Secret\) does not match/,
    },
    {
      name: 'a name with uppercase letters',
      path: configMapsPath('default'),
      options: { body: configMap('Bad_Name') },
      code: 422,
      reason: 'Invalid',
      message: /^ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name"/,
    },
    {
      name: 'a body with an unsupported media type',
      path: configMapsPath('default'),
      options: { body: 'x', type: 'text/csv' },
      code: 415,
      reason: 'UnsupportedMediaType',
      message: /accepted media types include: application\/json/,
    },
    {
      name: 'an Accept header with an unsupported media type',
      path: configMapsPath('default'),
      options: { headers: { accept: 'text/csv' } },
      code: 406,
      reason: 'NotAcceptable',
      message: /representations: application\/json/,
    },
    {
      name: 'a method that the path does not support',
      path: configMapsPath('default', 'first'),
      options: { method: 'POST', body: {} },
      code: 405,
      reason: 'MethodNotAllowed',
      message: /does not allow/,
    },
    {
      name: 'invalid percent-encoding',
      path: configMapsPath('default', '%zz'),
      code: 400,
      reason: 'BadRequest',
      message: /percent-encoding/,
    },
    {
      name: 'a resourceVersion that is not a number',
      path: `${configMapsPath('default')}?resourceVersion=abc`,
      code: 400,
      reason: 'BadRequest',
      message: /invalid resource version/,
    },
    {
      name: 'a field that cannot be selected',
      path: `${configMapsPath('default')}?fieldSelector=data.a=b`,
      code: 400,
      reason: 'BadRequest',
      message: /^"data.a" is not a known field selector/,
    },
    {
      name: 'a body above 3 MB',
      path: configMapsPath('default'),
      options: { body: configMap('big', { a: 'x'.repeat(3_200_000) }) },
      code: 413,
      reason: 'RequestEntityTooLarge',
      message: /at most 3145728 bytes/,
    },
    { name: 'a URL that is too long', path: `/api/v1/${'x'.repeat(20_000)}`, code: 414, reason: 'RequestURITooLong', message: /at most/ },
    {
      name: 'an unknown field with fieldValidation=Strict',
      path: `${configMapsPath('default')}?fieldValidation=Strict`,
      options: { body: { ...configMap('x'), dta: {} } },
      code: 400,
      reason: 'BadRequest',
      message: 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dta"',
    },
  ] as const) {
    test(`rejects ${name} with ${code}`, async () => {
      const { code: got, body } = await server.call(path, (options ?? {}) as object)
      assert.equal(got, code, JSON.stringify(body))
      assert.equal(body.kind, 'Status')
      assert.equal(body.reason, reason)
      if (typeof message === 'string') assert.equal(body.message, message)
      else assert.match(body.message!, message)
    })
  }

  test('names such as __proto__ and constructor are ordinary names', async () => {
    for (const name of ['__proto__', 'constructor', 'toString']) {
      assert.equal((await server.call(`/apis/${name}/v1/${name}`)).code, 404)
      assert.equal((await server.call(configMapsPath('default', name))).code, 404)
    }
    const { code, body } = await server.call(configMapsPath('default'), {
      body: '{"metadata":{"name":"proto","labels":{"constructor":"x"}},"data":{"__proto__":"y","constructor":"z"}}',
    })
    assert.equal(code, 201)
    assert.equal(Object.getOwnPropertyDescriptor(body.data, '__proto__')?.value, 'y')
    assert.equal((await server.call(`${configMapsPath('default')}?labelSelector=toString`)).body.items.length, 0)
  })

  test('an unknown field is dropped with a warning', async () => {
    const { code, headers, body } = await server.call(configMapsPath('default'), { body: { ...configMap('warned'), dta: {} } })
    assert.equal(code, 201)
    assert.equal(headers.get('warning'), '299 - "unknown field \\"dta\\""')
    assert.equal('dta' in body, false)
  })

  test('generateName generates a name', async () => {
    const { body } = await server.call(configMapsPath('default'), { body: configMap('', {}, { name: undefined, generateName: 'gen-' }) })
    assert.match(body.metadata.name, /^gen-[a-z0-9]{5}$/)
  })

  test('an update needs the newest resource version, or none', async () => {
    const { body: first } = await server.call(configMapsPath('default'), { body: configMap('versions') })
    const change = { ...first, data: { a: '1' } }
    const { body: second } = await server.call(configMapsPath('default', 'versions'), { method: 'PUT', body: change })
    assert.ok(Number(second.metadata.resourceVersion) > Number(first.metadata.resourceVersion))
    const stale = await server.call(configMapsPath('default', 'versions'), { method: 'PUT', body: { ...first, data: { a: '2' } } })
    assert.equal(stale.code, 409)
    assert.match(stale.body.message!, /^Operation cannot be fulfilled on configmaps "versions": the object has been modified/)
    const blind = await server.call(configMapsPath('default', 'versions'), { method: 'PUT', body: configMap('versions', { a: '3' }) })
    assert.equal(blind.code, 200)
    assert.equal(blind.body.metadata.uid, first.metadata.uid)
  })

  test('a write without changes keeps the resource version', async () => {
    const { body: first } = await server.call(configMapsPath('default'), { body: configMap('same', { a: 'b' }) })
    const { body: again } = await server.call(configMapsPath('default', 'same'), { method: 'PUT', body: first })
    const patched = await server.call(configMapsPath('default', 'same'), {
      method: 'PATCH',
      type: 'application/merge-patch+json',
      body: { data: { a: 'b' } },
    })
    assert.equal(again.metadata.resourceVersion, first.metadata.resourceVersion)
    assert.equal(patched.body.metadata.resourceVersion, first.metadata.resourceVersion)
  })

  test('a dry run returns the result and stores nothing', async () => {
    const { code, body } = await server.call(`${configMapsPath('default')}?dryRun=All`, { body: configMap('dry') })
    assert.equal(code, 201)
    assert.ok(body.metadata.uid)
    assert.equal((await server.call(configMapsPath('default', 'dry'))).code, 404)
    assert.equal((await server.call(`${configMapsPath('default')}?dryRun=some`, { body: configMap('dry') })).code, 422)
  })

  test('a delete with wrong preconditions is rejected', async () => {
    const { body } = await server.call(configMapsPath('default'), { body: configMap('guarded') })
    const remove = (preconditions: object) =>
      server.call(configMapsPath('default', 'guarded'), { method: 'DELETE', body: { preconditions } })
    assert.equal((await remove({ uid: 'other' })).code, 409)
    assert.equal((await remove({ resourceVersion: '1' })).code, 409)
    const done = await remove({ uid: body.metadata.uid, resourceVersion: body.metadata.resourceVersion })
    assert.deepEqual([done.code, done.body.status], [200, 'Success'])
  })

  test('an object with a finalizer is deleted when the finalizer is removed', async () => {
    const path = configMapsPath('default', 'held')
    await server.call(configMapsPath('default'), { body: configMap('held', {}, { finalizers: ['example.com/hold'] }) })
    const marked = await server.call(path, { method: 'DELETE' })
    assert.ok(marked.body.metadata.deletionTimestamp)
    const more = await server.call(path, {
      method: 'PATCH',
      type: 'application/merge-patch+json',
      body: { metadata: { finalizers: ['example.com/hold', 'a.b/c'] } },
    })
    assert.equal(more.code, 422)
    await server.call(path, { method: 'PATCH', type: 'application/merge-patch+json', body: { metadata: { finalizers: null } } })
    assert.equal((await server.call(path)).code, 404)
  })

  test('deletecollection deletes the selected objects', async () => {
    const namespace = await createNamespace(server, 'sweep')
    for (const [name, tier] of Object.entries({ a: 'x', b: 'y', c: 'x' }))
      await server.call(configMapsPath(namespace), { body: configMap(name, {}, { labels: { tier } }) })
    assert.equal((await server.call(`${configMapsPath(namespace)}?labelSelector=tier=x`, { method: 'DELETE' })).code, 200)
    assert.deepEqual(
      (await server.call(configMapsPath(namespace))).body.items.map(item => item.metadata.name),
      ['b'],
    )
  })

  test('bodies and responses may be YAML', async () => {
    const created = await server.call<string>(configMapsPath('default'), {
      body: 'metadata:\n  name: yaml\ndata:\n  a: "1"\n',
      type: 'application/yaml',
      headers: { accept: 'application/yaml' },
    })
    assert.equal(created.code, 201)
    assert.match(created.body, /^apiVersion: v1\nkind: ConfigMap\n/)
  })
})
