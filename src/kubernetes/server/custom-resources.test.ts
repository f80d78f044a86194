import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestServer, type TestServer, untilNotFound } from './server.testing.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

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

  test('a CustomResourceDefinition is usable when its creation returns', async () => {
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

  test('spec and status are written separately', async () => {
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

  test('names in use are not accepted', async () => {
    const rival = structuredClone(crd)
    rival.metadata.name = 'ships.example.com'
    rival.spec.names = { kind: 'Boat', plural: 'ships', shortNames: [], categories: [] }
    const { body } = await server.call('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: rival })
    const conditions = (body.status as unknown as { conditions: { reason: string; status: string }[] }).conditions
    assert.deepEqual([conditions[0]?.status, conditions[0]?.reason], ['False', 'ListKindConflict'])
    assert.equal((await server.call('/apis/example.com/v1/ships')).code, 404)
  })

  test('deleting a CustomResourceDefinition deletes its objects', async () => {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.example.com'
    assert.equal((await server.call(path, { method: 'DELETE' })).code, 200)
    await untilNotFound(server, path)
    assert.equal((await server.call(boats())).code, 404)
    assert.equal((await server.call('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: crd })).code, 201)
    assert.equal((await server.call(boats())).body.items.length, 0)
  })
})
