import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { KubeObject } from '../object/index.ts'
import { configMap, configMapsPath, createNamespace, startTestServer, type TestServer } from './server.testing.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

describe('lists', () => {
  test('pages are consistent while objects are created and deleted', async () => {
    const namespace = await createNamespace(server, 'pages')
    for (const name of ['a', 'b', 'c', 'd', 'e']) await server.call(configMapsPath(namespace), { body: configMap(name) })
    const first = await server.call<{ metadata: Record<string, string>; items: KubeObject[] }>(`${configMapsPath(namespace)}?limit=2`)
    assert.equal(first.body.metadata.remainingItemCount, 3)
    await server.call(configMapsPath(namespace, 'c'), { method: 'DELETE' })
    await server.call(configMapsPath(namespace), { body: configMap('bb') })
    const names = first.body.items.map(item => item.metadata.name)
    for (let next = first.body.metadata.continue; next; ) {
      const page = await server.call<typeof first.body>(`${configMapsPath(namespace)}?limit=2&continue=${next}`)
      assert.equal(page.body.metadata.resourceVersion, first.body.metadata.resourceVersion)
      names.push(...page.body.items.map(item => item.metadata.name))
      next = page.body.metadata.continue
    }
    assert.deepEqual(names, ['a', 'b', 'c', 'd', 'e'])
    assert.equal((await server.call(`${configMapsPath(namespace)}?limit=2&continue=bm90OjI`)).code, 400)
    assert.equal((await server.call(`${configMapsPath(namespace)}?limit=2&continue=%%%`)).code, 400)
  })

  test('label and field selectors select objects', async () => {
    const namespace = await createNamespace(server, 'selected')
    for (const [name, tier] of Object.entries({ a: 'x', b: 'y', c: 'z' }))
      await server.call(configMapsPath(namespace), { body: configMap(name, {}, { labels: { tier } }) })
    for (const [query, names] of [
      ['labelSelector=tier%20in%20(x,y)', ['a', 'b']],
      ['labelSelector=!tier', []],
      ['fieldSelector=metadata.name=b', ['b']],
      ['fieldSelector=metadata.name!=b', ['a', 'c']],
      ['labelSelector=tier!=x&fieldSelector=metadata.name=c', ['c']],
    ] as const) {
      assert.deepEqual(
        (await server.call(`${configMapsPath(namespace)}?${query}`)).body.items.map(item => item.metadata.name),
        names,
        query,
      )
    }
  })

  test('objects are returned as Tables or as PartialObjectMetadata on request', async () => {
    await server.call(configMapsPath('default'), { body: configMap('tabled', { a: '1', b: '2' }) })
    type Table = { kind: string; columnDefinitions: { name: string }[]; rows: { cells: unknown[]; object: KubeObject }[] }
    const accept = (as: string) => ({ headers: { accept: `application/json;as=${as};g=meta.k8s.io;v=v1,application/json` } })
    const { body: table } = await server.call<Table>(`${configMapsPath('default')}?fieldSelector=metadata.name=tabled`, accept('Table'))
    assert.deepEqual(
      table.columnDefinitions.map(column => column.name),
      ['Name', 'Data', 'Age'],
    )
    assert.deepEqual(table.rows[0]?.cells.slice(0, 2), ['tabled', 2])
    assert.equal(table.rows[0]?.object.kind, 'PartialObjectMetadata')
    const { body: partial } = await server.call(configMapsPath('default', 'tabled'), accept('PartialObjectMetadata'))
    assert.deepEqual(Object.keys(partial), ['kind', 'apiVersion', 'metadata'])
  })

  test('large lists are streamed, compressed when the client accepts gzip', async () => {
    const namespace = await createNamespace(server, 'large')
    await Promise.all(
      Array.from({ length: 80 }, (_, i) => server.call(configMapsPath(namespace), { body: configMap(`m${i}`, { a: 'x'.repeat(20_000) }) })),
    )
    for (const encoding of ['gzip', 'identity']) {
      const { body, headers } = await server.call(configMapsPath(namespace), { headers: { 'accept-encoding': encoding } })
      assert.equal(body.items.length, 80)
      assert.equal(headers.get('content-encoding'), encoding === 'gzip' ? 'gzip' : null)
    }
  })
})
