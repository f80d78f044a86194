import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Agent, fetch } from 'undici'
import type { KubeObject } from '../object/index.ts'
import { issueClientCertificate } from './index.ts'
import { startTestServer, type TestServer } from './server.testing.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

const maps = (namespace: string, name = '') => `/api/v1/namespaces/${namespace}/configmaps${name && `/${name}`}`
const configMap = (name: string, data: object = {}, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  data,
})
const newNamespace = async (name: string) => {
  const { code } = await server.call('/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } })
  assert.equal(code, 201)
  return name
}
/** Waits for something the server does by itself; its watch tells us when to look. */
const untilGone = async (path: string) => {
  for (const deadlineMs = Date.now() + 5_000; Date.now() < deadlineMs; ) {
    if ((await server.call(path)).code === 404) return
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  assert.fail(`${path} is still there`)
}

describe('create, read, update, delete', () => {
  test('an object gets its metadata from the server and is found again', async () => {
    const { code, body } = await server.call(maps('default'), { body: configMap('first', { a: 'b' }) })
    assert.equal(code, 201)
    assert.match(body.metadata.uid, /^[0-9a-f-]{36}$/)
    assert.match(body.metadata.resourceVersion!, /^[0-9]+$/)
    assert.ok(Number(body.metadata.resourceVersion) < 2 ** 53)
    assert.equal(body.metadata.managedFields?.[0]?.manager, 'tester')
    assert.deepEqual((await server.call(maps('default', 'first'))).body, body)
  })

  test('text outside ASCII comes back as it was sent', async () => {
    const data = { greeting: 'žluťoučký 🐎 \u2028 "quoted"' }
    await server.call(maps('default'), { body: configMap('unicode', data) })
    assert.deepEqual((await server.call(maps('default', 'unicode'))).body.data, data)
  })

  for (const { name, path, options, code, reason, message } of [
    {
      name: 'a second object of the same name',
      path: maps('default'),
      options: { body: configMap('first') },
      code: 409,
      reason: 'AlreadyExists',
      message: 'configmaps "first" already exists',
    },
    {
      name: 'an object that is not there',
      path: maps('default', 'none'),
      code: 404,
      reason: 'NotFound',
      message: 'configmaps "none" not found',
    },
    {
      name: 'a namespace that is not there',
      path: maps('nowhere'),
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
    { name: 'broken JSON', path: maps('default'), options: { body: '{"a":' }, code: 400, reason: 'BadRequest', message: /not valid JSON/ },
    {
      name: 'an array',
      path: maps('default'),
      options: { body: [] },
      code: 400,
      reason: 'BadRequest',
      message: /must be one ConfigMap object/,
    },
    {
      name: 'another kind',
      path: maps('default'),
      options: { body: { ...configMap('x'), kind: 'Secret' } },
      code: 400,
      reason: 'BadRequest',
      message: /kind in the data \(Secret\) does not match/,
    },
    {
      name: 'a name with capitals',
      path: maps('default'),
      options: { body: configMap('Bad_Name') },
      code: 422,
      reason: 'Invalid',
      message: /^ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name"/,
    },
    {
      name: 'a body of an unknown type',
      path: maps('default'),
      options: { body: 'x', type: 'text/csv' },
      code: 415,
      reason: 'UnsupportedMediaType',
      message: /accepted media types include: application\/json/,
    },
    {
      name: 'an answer of an unknown type',
      path: maps('default'),
      options: { headers: { accept: 'text/csv' } },
      code: 406,
      reason: 'NotAcceptable',
      message: /representations: application\/json/,
    },
    {
      name: 'a method that is none',
      path: maps('default', 'first'),
      options: { method: 'POST', body: {} },
      code: 405,
      reason: 'MethodNotAllowed',
      message: /does not allow/,
    },
    { name: 'an invalid percent-encoding', path: maps('default', '%zz'), code: 400, reason: 'BadRequest', message: /percent-encoding/ },
    {
      name: 'a resource version that is no number',
      path: `${maps('default')}?resourceVersion=abc`,
      code: 400,
      reason: 'BadRequest',
      message: /invalid resource version/,
    },
    {
      name: 'a field that cannot be selected',
      path: `${maps('default')}?fieldSelector=data.a=b`,
      code: 400,
      reason: 'BadRequest',
      message: /^"data.a" is not a known field selector/,
    },
    {
      name: 'a body above 3 MB',
      path: maps('default'),
      options: { body: configMap('big', { a: 'x'.repeat(3_200_000) }) },
      code: 413,
      reason: 'RequestEntityTooLarge',
      message: /at most 3145728 bytes/,
    },
    { name: 'a URL without end', path: `/api/v1/${'x'.repeat(20_000)}`, code: 414, reason: 'RequestURITooLong', message: /at most/ },
    {
      name: 'an unknown field, strictly',
      path: `${maps('default')}?fieldValidation=Strict`,
      options: { body: { ...configMap('x'), dta: {} } },
      code: 400,
      reason: 'BadRequest',
      message: 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dta"',
    },
  ] as const) {
    test(`${name} is refused with ${code}`, async () => {
      const { code: got, body } = await server.call(path, (options ?? {}) as object)
      assert.equal(got, code, JSON.stringify(body))
      assert.equal(body.kind, 'Status')
      assert.equal(body.reason, reason)
      if (typeof message === 'string') assert.equal(body.message, message)
      else assert.match(body.message!, message)
    })
  }

  test('names such as __proto__ and constructor are only names', async () => {
    for (const name of ['__proto__', 'constructor', 'toString']) {
      assert.equal((await server.call(`/apis/${name}/v1/${name}`)).code, 404)
      assert.equal((await server.call(maps('default', name))).code, 404)
    }
    const { code, body } = await server.call(maps('default'), {
      body: '{"metadata":{"name":"proto","labels":{"constructor":"x"}},"data":{"__proto__":"y","constructor":"z"}}',
    })
    assert.equal(code, 201)
    assert.equal(Object.getOwnPropertyDescriptor(body.data, '__proto__')?.value, 'y')
    assert.equal((await server.call(`${maps('default')}?labelSelector=toString`)).body.items.length, 0)
  })

  test('an unknown field is left out with a warning', async () => {
    const { code, headers, body } = await server.call(maps('default'), { body: { ...configMap('warned'), dta: {} } })
    assert.equal(code, 201)
    assert.equal(headers.get('warning'), '299 - "unknown field \\"dta\\""')
    assert.equal('dta' in body, false)
  })

  test('generateName makes a name', async () => {
    const { body } = await server.call(maps('default'), { body: configMap('', {}, { name: undefined, generateName: 'gen-' }) })
    assert.match(body.metadata.name, /^gen-[a-z0-9]{5}$/)
  })

  test('an update needs the newest resource version, or none', async () => {
    const { body: first } = await server.call(maps('default'), { body: configMap('versions') })
    const change = { ...first, data: { a: '1' } }
    const { body: second } = await server.call(maps('default', 'versions'), { method: 'PUT', body: change })
    assert.ok(Number(second.metadata.resourceVersion) > Number(first.metadata.resourceVersion))
    const stale = await server.call(maps('default', 'versions'), { method: 'PUT', body: { ...first, data: { a: '2' } } })
    assert.equal(stale.code, 409)
    assert.match(stale.body.message!, /^Operation cannot be fulfilled on configmaps "versions": the object has been modified/)
    const blind = await server.call(maps('default', 'versions'), { method: 'PUT', body: configMap('versions', { a: '3' }) })
    assert.equal(blind.code, 200)
    assert.equal(blind.body.metadata.uid, first.metadata.uid)
  })

  test('a write that changes nothing keeps the resource version', async () => {
    const { body: first } = await server.call(maps('default'), { body: configMap('same', { a: 'b' }) })
    const { body: again } = await server.call(maps('default', 'same'), { method: 'PUT', body: first })
    const patched = await server.call(maps('default', 'same'), {
      method: 'PATCH',
      type: 'application/merge-patch+json',
      body: { data: { a: 'b' } },
    })
    assert.equal(again.metadata.resourceVersion, first.metadata.resourceVersion)
    assert.equal(patched.body.metadata.resourceVersion, first.metadata.resourceVersion)
  })

  test('a dry run answers as if and stores nothing', async () => {
    const { code, body } = await server.call(`${maps('default')}?dryRun=All`, { body: configMap('dry') })
    assert.equal(code, 201)
    assert.ok(body.metadata.uid)
    assert.equal((await server.call(maps('default', 'dry'))).code, 404)
    assert.equal((await server.call(`${maps('default')}?dryRun=some`, { body: configMap('dry') })).code, 422)
  })

  test('preconditions guard a deletion', async () => {
    const { body } = await server.call(maps('default'), { body: configMap('guarded') })
    const remove = (preconditions: object) => server.call(maps('default', 'guarded'), { method: 'DELETE', body: { preconditions } })
    assert.equal((await remove({ uid: 'other' })).code, 409)
    assert.equal((await remove({ resourceVersion: '1' })).code, 409)
    const done = await remove({ uid: body.metadata.uid, resourceVersion: body.metadata.resourceVersion })
    assert.deepEqual([done.code, done.body.status], [200, 'Success'])
  })

  test('a finalizer holds an object back until it is taken off', async () => {
    const path = maps('default', 'held')
    await server.call(maps('default'), { body: configMap('held', {}, { finalizers: ['example.com/hold'] }) })
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

  test('deletecollection deletes what is selected', async () => {
    const namespace = await newNamespace('sweep')
    for (const [name, tier] of Object.entries({ a: 'x', b: 'y', c: 'x' }))
      await server.call(maps(namespace), { body: configMap(name, {}, { labels: { tier } }) })
    assert.equal((await server.call(`${maps(namespace)}?labelSelector=tier=x`, { method: 'DELETE' })).code, 200)
    assert.deepEqual(
      (await server.call(maps(namespace))).body.items.map(item => item.metadata.name),
      ['b'],
    )
  })

  test('bodies and answers may be YAML', async () => {
    const created = await server.call<string>(maps('default'), {
      body: 'metadata:\n  name: yaml\ndata:\n  a: "1"\n',
      type: 'application/yaml',
      headers: { accept: 'application/yaml' },
    })
    assert.equal(created.code, 201)
    assert.match(created.body, /^apiVersion: v1\nkind: ConfigMap\n/)
  })
})

describe('patches', () => {
  const patch = (name: string, type: string, body: unknown, query = '') =>
    server.call(maps('default', name) + query, { method: 'PATCH', type: `application/${type}`, body })

  test('JSON, merge and strategic patches change what they say', async () => {
    await server.call(maps('default'), { body: configMap('patched', { a: '1' }) })
    assert.deepEqual((await patch('patched', 'json-patch+json', [{ op: 'add', path: '/data/b', value: '2' }])).body.data, {
      a: '1',
      b: '2',
    })
    assert.deepEqual((await patch('patched', 'merge-patch+json', { data: { a: null } })).body.data, { b: '2' })
    assert.deepEqual((await patch('patched', 'strategic-merge-patch+json', { data: { c: '3' } })).body.data, { b: '2', c: '3' })
    assert.equal((await patch('patched', 'json-patch+json', [{ op: 'test', path: '/data/b', value: '9' }])).code, 422)
  })

  test('server-side apply creates, owns, conflicts and takes over', async () => {
    const applied = (data: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, data })
    const apply = (data: object, query: string) => patch('applied', 'apply-patch+yaml', applied(data), query)
    assert.equal((await apply({ a: '1' }, '')).code, 422)
    assert.equal((await apply({ a: '1', b: '1' }, '?fieldManager=one')).code, 201)
    const conflict = await apply({ a: '2' }, '?fieldManager=two')
    assert.deepEqual([conflict.code, conflict.body.reason], [409, 'Conflict'])
    assert.deepEqual(
      conflict.body.details?.causes?.map(cause => cause.field),
      ['.data.a'],
    )
    assert.equal((await apply({ a: '2' }, '?fieldManager=two&force=true')).body.data?.['a' as never], '2')
    const { body } = await apply({}, '?fieldManager=one')
    assert.deepEqual(body.data, { a: '2' }, 'one gave up b, and two owns a')
    const same = await apply({}, '?fieldManager=one')
    assert.equal(same.body.metadata.resourceVersion, body.metadata.resourceVersion)
  })

  test('concurrent patches of one object all take effect', async () => {
    await server.call(maps('default'), { body: configMap('busy') })
    await Promise.all(Array.from({ length: 50 }, (_, i) => patch('busy', 'merge-patch+json', { data: { [`k${i}`]: 'v' } })))
    assert.equal(Object.keys((await server.call(maps('default', 'busy'))).body.data as object).length, 50)
  })
})

describe('lists', () => {
  test('pages hold together while objects come and go', async () => {
    const namespace = await newNamespace('pages')
    for (const name of ['a', 'b', 'c', 'd', 'e']) await server.call(maps(namespace), { body: configMap(name) })
    const first = await server.call<{ metadata: Record<string, string>; items: KubeObject[] }>(`${maps(namespace)}?limit=2`)
    assert.equal(first.body.metadata.remainingItemCount, 3)
    await server.call(maps(namespace, 'c'), { method: 'DELETE' })
    await server.call(maps(namespace), { body: configMap('bb') })
    const names = first.body.items.map(item => item.metadata.name)
    for (let next = first.body.metadata.continue; next; ) {
      const page = await server.call<typeof first.body>(`${maps(namespace)}?limit=2&continue=${next}`)
      assert.equal(page.body.metadata.resourceVersion, first.body.metadata.resourceVersion)
      names.push(...page.body.items.map(item => item.metadata.name))
      next = page.body.metadata.continue
    }
    assert.deepEqual(names, ['a', 'b', 'c', 'd', 'e'])
    assert.equal((await server.call(`${maps(namespace)}?limit=2&continue=bm90OjI`)).code, 400)
    assert.equal((await server.call(`${maps(namespace)}?limit=2&continue=%%%`)).code, 400)
  })

  test('selectors by label and field', async () => {
    const namespace = await newNamespace('selected')
    for (const [name, tier] of Object.entries({ a: 'x', b: 'y', c: 'z' }))
      await server.call(maps(namespace), { body: configMap(name, {}, { labels: { tier } }) })
    for (const [query, names] of [
      ['labelSelector=tier%20in%20(x,y)', ['a', 'b']],
      ['labelSelector=!tier', []],
      ['fieldSelector=metadata.name=b', ['b']],
      ['fieldSelector=metadata.name!=b', ['a', 'c']],
      ['labelSelector=tier!=x&fieldSelector=metadata.name=c', ['c']],
    ] as const) {
      assert.deepEqual(
        (await server.call(`${maps(namespace)}?${query}`)).body.items.map(item => item.metadata.name),
        names,
        query,
      )
    }
  })

  test('Tables and metadata alone', async () => {
    await server.call(maps('default'), { body: configMap('tabled', { a: '1', b: '2' }) })
    type Table = { kind: string; columnDefinitions: { name: string }[]; rows: { cells: unknown[]; object: KubeObject }[] }
    const accept = (as: string) => ({ headers: { accept: `application/json;as=${as};g=meta.k8s.io;v=v1,application/json` } })
    const { body: table } = await server.call<Table>(`${maps('default')}?fieldSelector=metadata.name=tabled`, accept('Table'))
    assert.deepEqual(
      table.columnDefinitions.map(column => column.name),
      ['Name', 'Data', 'Age'],
    )
    assert.deepEqual(table.rows[0]?.cells.slice(0, 2), ['tabled', 2])
    assert.equal(table.rows[0]?.object.kind, 'PartialObjectMetadata')
    const { body: partial } = await server.call(maps('default', 'tabled'), accept('PartialObjectMetadata'))
    assert.deepEqual(Object.keys(partial), ['kind', 'apiVersion', 'metadata'])
  })

  test('large lists stream, compressed when asked', async () => {
    const namespace = await newNamespace('large')
    await Promise.all(
      Array.from({ length: 80 }, (_, i) => server.call(maps(namespace), { body: configMap(`m${i}`, { a: 'x'.repeat(20_000) }) })),
    )
    for (const encoding of ['gzip', 'identity']) {
      const { body, headers } = await server.call(maps(namespace), { headers: { 'accept-encoding': encoding } })
      assert.equal(body.items.length, 80)
      assert.equal(headers.get('content-encoding'), encoding === 'gzip' ? 'gzip' : null)
    }
  })
})

describe('watches', () => {
  const briefly = async (path: string, count: number) => {
    const watch = await server.watch(path)
    const seen: string[] = []
    for (let i = 0; i < count; i++) {
      const event = await watch.next()
      if (!event) break
      seen.push(`${event.type} ${event.object.metadata?.name ?? (event.object as { reason?: string }).reason}`)
    }
    watch.stop()
    return seen
  }

  test('from nothing: what is there, then what happens', async () => {
    const namespace = await newNamespace('watch-all')
    await server.call(maps(namespace), { body: configMap('old') })
    const watch = await server.watch(`${maps(namespace)}?watch=true`)
    assert.equal((await watch.next())?.object.metadata.name, 'old')
    await server.call(maps(namespace), { body: configMap('new') })
    await server.call(maps(namespace, 'new'), { method: 'PATCH', type: 'application/merge-patch+json', body: { data: { a: 'b' } } })
    await server.call(maps(namespace, 'new'), { method: 'DELETE' })
    const events = [await watch.next(), await watch.next(), await watch.next()]
    assert.deepEqual(
      events.map(event => event?.type),
      ['ADDED', 'MODIFIED', 'DELETED'],
    )
    const versions = events.map(event => Number(event?.object.metadata.resourceVersion))
    assert.deepEqual(
      versions,
      versions.toSorted((a, b) => a - b),
    )
    watch.stop()
  })

  test('from a version: exactly what came after it', async () => {
    const namespace = await newNamespace('watch-from')
    const { body: a } = await server.call(maps(namespace), { body: configMap('a') })
    await server.call(maps(namespace), { body: configMap('b') })
    await server.call(maps(namespace, 'a'), { method: 'DELETE' })
    assert.deepEqual(await briefly(`${maps(namespace)}?watch=1&resourceVersion=${a.metadata.resourceVersion}`, 2), ['ADDED b', 'DELETED a'])
  })

  test('from the future: 410 inside the stream, so that a client lists again', async () => {
    assert.deepEqual(await briefly(`${maps('default')}?watch=1&resourceVersion=9007199254740990`, 2), ['ERROR Expired'])
  })

  test('an object that leaves the selection is DELETED, one that enters is ADDED', async () => {
    const namespace = await newNamespace('watch-labels')
    const label = (name: string, tier: string) =>
      server.call(maps(namespace, name), {
        method: 'PATCH',
        type: 'application/merge-patch+json',
        body: { metadata: { labels: { tier } } },
      })
    const watch = await server.watch(`${maps(namespace)}?watch=1&labelSelector=tier=x`)
    await server.call(maps(namespace), { body: configMap('a', {}, { labels: { tier: 'y' } }) })
    await label('a', 'x')
    await label('a', 'z')
    const entered = await watch.next()
    const left = await watch.next()
    assert.deepEqual([entered?.type, left?.type], ['ADDED', 'DELETED'])
    assert.equal(left?.object.metadata.labels?.tier, 'x', 'it is shown as it last was in the selection')
    assert.ok(Number(left?.object.metadata.resourceVersion) > Number(entered?.object.metadata.resourceVersion))
    watch.stop()
  })

  test('WatchList: the objects, then the bookmark that ends them', async () => {
    const namespace = await newNamespace('watch-list')
    await server.call(maps(namespace), { body: configMap('a') })
    const watch = await server.watch(
      `${maps(namespace)}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
    )
    assert.equal((await watch.next())?.type, 'ADDED')
    const bookmark = await watch.next()
    assert.equal(bookmark?.type, 'BOOKMARK')
    assert.equal(bookmark?.object.metadata.annotations?.['k8s.io/initial-events-end'], 'true')
    watch.stop()
    assert.equal((await server.call(`${maps(namespace)}?watch=1&sendInitialEvents=true`)).code, 422)
  })

  test('timeoutSeconds ends a watch cleanly', async () => {
    const watch = await server.watch(`${maps('watch-none')}?watch=1&timeoutSeconds=1`)
    assert.equal(await watch.next(), undefined)
  })
})

describe('custom resources', () => {
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'boats.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { kind: 'Boat', plural: 'boats', shortNames: ['bt'], categories: ['fleet'] },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          selectableFields: [{ jsonPath: '.spec.color' }],
          additionalPrinterColumns: [{ name: 'Color', type: 'string', jsonPath: '.spec.color' }],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              required: ['spec'],
              properties: {
                spec: {
                  type: 'object',
                  required: ['color'],
                  properties: { color: { type: 'string' }, oars: { type: 'integer', default: 2, minimum: 0 } },
                },
                status: { type: 'object', properties: { afloat: { type: 'boolean' } } },
              },
            },
          },
        },
        {
          name: 'v1beta1',
          served: true,
          storage: false,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  }
  const boats = (name = '', version = 'v1') => `/apis/example.com/${version}/namespaces/default/boats${name && `/${name}`}`
  const boat = (name: string, spec: object) => ({ apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name }, spec })

  test('a definition is usable as soon as its creation is answered', async () => {
    const { code, body } = await server.call('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: crd })
    assert.equal(code, 201)
    const conditions = (body.status as unknown as { conditions: { type: string; status: string }[] }).conditions
    assert.deepEqual(
      conditions.map(condition => `${condition.type}=${condition.status}`),
      ['NamesAccepted=True', 'Established=True'],
    )
    assert.equal((await server.call(boats())).body.kind, 'BoatList')
    const discovery = await server.call<{ resources: { name: string }[] }>('/apis/example.com/v1')
    assert.deepEqual(
      discovery.body.resources.map(resource => resource.name),
      ['boats', 'boats/status'],
    )
  })

  test('objects are defaulted, pruned and validated', async () => {
    const { body } = await server.call(boats(), { body: boat('red', { color: 'red', sails: 1 }) })
    assert.deepEqual(body.spec, { color: 'red', oars: 2 })
    assert.equal(body.metadata.generation, 1)
    const bad = await server.call(boats(), { body: boat('bad', { oars: -1 }) })
    assert.equal(bad.code, 422)
    assert.deepEqual(bad.body.details?.causes?.map(cause => cause.field).sort(), ['spec.color', 'spec.oars'])
  })

  test('spec and status are written apart', async () => {
    const merge = (path: string, body: object) => server.call(path, { method: 'PATCH', type: 'application/merge-patch+json', body })
    await server.call(boats(), { body: boat('split', { color: 'blue' }) })
    assert.equal((await merge(boats('split'), { status: { afloat: true } })).body.status, undefined)
    const status = (await merge(`${boats('split')}/status`, { status: { afloat: true }, spec: { color: 'black' } })).body
    assert.deepEqual([status.status as unknown, status.spec, status.metadata.generation], [{ afloat: true }, { color: 'blue', oars: 2 }, 1])
    const spec = (await merge(boats('split'), { spec: { color: 'green' } })).body
    assert.deepEqual([spec.status as unknown, spec.metadata.generation], [{ afloat: true }, 2])
    assert.equal((await merge(boats('split'), { metadata: { labels: { a: 'b' } } })).body.metadata.generation, 2)
  })

  test('selectable fields select lists and watches', async () => {
    await server.call(boats(), { body: boat('pink', { color: 'pink' }) })
    const { body } = await server.call(`${boats()}?fieldSelector=spec.color=pink`)
    assert.deepEqual(
      body.items.map(item => item.metadata.name),
      ['pink'],
    )
    const watch = await server.watch(`${boats()}?watch=1&fieldSelector=spec.color=pink`)
    assert.equal((await watch.next())?.object.metadata.name, 'pink')
    await server.call(boats('pink'), { method: 'PATCH', type: 'application/merge-patch+json', body: { spec: { color: 'gray' } } })
    assert.equal((await watch.next())?.type, 'DELETED')
    watch.stop()
  })

  test('the other version shows the same object under its own apiVersion', async () => {
    const { body } = await server.call(boats('red', 'v1beta1'))
    assert.equal(body.apiVersion, 'example.com/v1beta1')
    const { body: list } = await server.call(boats('', 'v1beta1'))
    assert.ok(list.items.every(item => item.apiVersion === 'example.com/v1beta1'))
  })

  test('names that are taken are not accepted', async () => {
    const rival = structuredClone(crd)
    rival.metadata.name = 'ships.example.com'
    rival.spec.names = { kind: 'Boat', plural: 'ships', shortNames: [], categories: [] }
    const { body } = await server.call('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: rival })
    const conditions = (body.status as unknown as { conditions: { reason: string; status: string }[] }).conditions
    assert.deepEqual([conditions[0]?.status, conditions[0]?.reason], ['False', 'ListKindConflict'])
    assert.equal((await server.call('/apis/example.com/v1/ships')).code, 404)
  })

  test('a definition takes its objects with it', async () => {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.example.com'
    assert.equal((await server.call(path, { method: 'DELETE' })).code, 200)
    await untilGone(path)
    assert.equal((await server.call(boats())).code, 404)
    assert.equal((await server.call('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: crd })).code, 201)
    assert.equal((await server.call(boats())).body.items.length, 0)
  })
})

describe('owners and namespaces', () => {
  const owned = async (namespace: string, name: string, owner: KubeObject, extra: object = {}) => {
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: owner.metadata.name, uid: owner.metadata.uid, ...extra }]
    return (await server.call(maps(namespace), { body: configMap(name, {}, { ownerReferences }) })).body
  }

  test('dependents go after their last owner, also dependents of dependents', async () => {
    const namespace = await newNamespace('gc')
    const { body: root } = await server.call(maps(namespace), { body: configMap('root') })
    const child = await owned(namespace, 'child', root)
    await owned(namespace, 'grandchild', child)
    await server.call(maps(namespace, 'root'), { method: 'DELETE' })
    await untilGone(maps(namespace, 'grandchild'))
    assert.equal((await server.call(maps(namespace, 'child'))).code, 404)
  })

  test('a dependent of an owner that never was goes too', async () => {
    await owned('default', 'lost', { ...configMap('never'), metadata: { name: 'never', uid: 'no-such-uid' } } as unknown as KubeObject)
    await untilGone(maps('default', 'lost'))
  })

  test('Orphan leaves them, without the reference', async () => {
    const { body: root } = await server.call(maps('default'), { body: configMap('orphaner') })
    await owned('default', 'orphan', root)
    await server.call(`${maps('default', 'orphaner')}?propagationPolicy=Orphan`, { method: 'DELETE' })
    await untilGone(maps('default', 'orphaner'))
    assert.equal((await server.call(maps('default', 'orphan'))).body.metadata.ownerReferences, undefined)
  })

  test('Foreground deletes them first', async () => {
    const { body: root } = await server.call(maps('default'), { body: configMap('foreground') })
    const child = await owned('default', 'blocking', root, { blockOwnerDeletion: true })
    const hold = (finalizers: string[] | null) =>
      server.call(maps('default', 'blocking'), {
        method: 'PATCH',
        type: 'application/merge-patch+json',
        body: { metadata: { finalizers } },
      })
    await hold(['example.com/hold'])
    const watch = await server.watch(
      `${maps('default')}?watch=1&fieldSelector=metadata.name=blocking&resourceVersion=${child.metadata.resourceVersion}`,
    )
    await server.call(`${maps('default', 'foreground')}?propagationPolicy=Foreground`, { method: 'DELETE' })
    while (!(await watch.next())?.object.metadata.deletionTimestamp);
    watch.stop()
    assert.equal((await server.call(maps('default', 'foreground'))).code, 200, 'the owner waits')
    await hold(null)
    await untilGone(maps('default', 'foreground'))
  })

  test('a namespace takes its content with it and takes nothing new while it goes', async () => {
    const namespace = await newNamespace('going')
    await server.call(maps(namespace), { body: configMap('held', {}, { finalizers: ['example.com/hold'] }) })
    await server.call(maps(namespace), { body: configMap('free') })
    const { body } = await server.call(`/api/v1/namespaces/${namespace}`, { method: 'DELETE' })
    assert.equal((body.status as unknown as { phase: string }).phase, 'Terminating')
    const late = await server.call(maps(namespace), { body: configMap('late') })
    assert.equal(late.code, 403)
    assert.match(late.body.message!, /because it is being terminated/)
    await untilGone(maps(namespace, 'free'))
    await server.call(maps(namespace, 'held'), {
      method: 'PATCH',
      type: 'application/merge-patch+json',
      body: { metadata: { finalizers: null } },
    })
    await untilGone(`/api/v1/namespaces/${namespace}`)
  })
})

describe('who may ask', () => {
  test('strangers learn only that we are here', async () => {
    for (const path of ['/healthz', '/livez', '/readyz', '/version'])
      assert.equal((await server.call(path, { token: null })).code, 200, path)
    for (const path of ['/', '/api', '/apis', '/openapi/v3', maps('default'), '/healthz/etcd', '/metrics']) {
      assert.equal((await server.call(path, { token: null })).code, 401, path)
      assert.equal((await server.call(path, { token: 'wrong' })).code, 401, path)
    }
  })

  test('a client certificate of our authority names its user', async () => {
    const { certificate, key } = await issueClientCertificate(
      join(server.dataDir, 'pki'),
      { name: 'carl', groups: ['system:masters'], ttlMs: 3_600_000 },
      Date.now(),
    )
    const agent = new Agent({ connect: { ca: server.server.caCertificate, cert: certificate, key } })
    const response = await fetch(server.server.url + maps('default'), { dispatcher: agent })
    assert.equal(response.status, 200)
    await response.arrayBuffer()
    await agent.destroy()
  })

  test('issued tokens: valid, over, and not enough', async () => {
    const { server: api } = server
    const admin = api.issueToken({ name: 'ann', groups: ['system:masters'], ttlMs: 60_000 })
    assert.equal((await server.call(maps('default'), { token: admin })).code, 200)
    const someone = api.issueToken({ name: 'bob', groups: [], ttlMs: 60_000 })
    const refused = await server.call(maps('default'), { token: someone })
    assert.equal(refused.code, 403)
    assert.match(
      refused.body.message!,
      /^configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace "default"/,
    )
    assert.equal((await server.call(maps('default'), { token: `${admin}x` })).code, 401)
    const over = api.issueToken({ name: 'ann', groups: ['system:masters'], ttlMs: 1 })
    await new Promise(resolve => setTimeout(resolve, 1_100))
    assert.equal((await server.call(maps('default'), { token: over })).code, 401)
  })
})

describe('discovery', () => {
  test('aggregated discovery, with an ETag', async () => {
    const headers = { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json' }
    const first = await server.call<string>('/apis', { headers })
    assert.equal(first.headers.get('content-type'), 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList')
    const again = await server.call('/apis', { headers: { ...headers, 'if-none-match': first.headers.get('etag')! } })
    assert.equal(again.code, 304)
  })

  test('OpenAPI v3 has schemas and a patch that validates fields', async () => {
    const { body: index } = await server.call<{ paths: Record<string, { serverRelativeURL: string }> }>('/openapi/v3')
    type Document = {
      paths: Record<string, { patch?: { parameters: { name: string }[] } }>
      components: { schemas: Record<string, object> }
    }
    const { body } = await server.call<Document>(index.paths['api/v1']!.serverRelativeURL)
    assert.ok(body.components.schemas['io.k8s.api.core.v1.ConfigMap'])
    const patch = body.paths['/api/v1/namespaces/{namespace}/configmaps/{name}']?.patch
    assert.ok(patch?.parameters.some(parameter => parameter.name === 'fieldValidation'))
  })
})
