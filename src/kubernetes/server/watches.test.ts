import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { configMap, configMapsPath, createNamespace, startTestServer, type TestServer } from './server.testing.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

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

  test('a watch without a version sends the current objects, then changes', async () => {
    const namespace = await createNamespace(server, 'watch-all')
    await server.call(configMapsPath(namespace), { body: configMap('old') })
    const watch = await server.watch(`${configMapsPath(namespace)}?watch=true`)
    assert.equal((await watch.next())?.object.metadata.name, 'old')
    await server.call(configMapsPath(namespace), { body: configMap('new') })
    await server.call(configMapsPath(namespace, 'new'), {
      method: 'PATCH',
      type: 'application/merge-patch+json',
      body: { data: { a: 'b' } },
    })
    await server.call(configMapsPath(namespace, 'new'), { method: 'DELETE' })
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

  test('a watch from a version sends exactly the later changes', async () => {
    const namespace = await createNamespace(server, 'watch-from')
    const { body: a } = await server.call(configMapsPath(namespace), { body: configMap('a') })
    await server.call(configMapsPath(namespace), { body: configMap('b') })
    await server.call(configMapsPath(namespace, 'a'), { method: 'DELETE' })
    assert.deepEqual(await briefly(`${configMapsPath(namespace)}?watch=1&resourceVersion=${a.metadata.resourceVersion}`, 2), [
      'ADDED b',
      'DELETED a',
    ])
  })

  test('a watch from a future version gets 410 in the stream', async () => {
    assert.deepEqual(await briefly(`${configMapsPath('default')}?watch=1&resourceVersion=9007199254740990`, 2), ['ERROR Expired'])
  })

  test('an object that leaves the selection is DELETED, one that enters is ADDED', async () => {
    const namespace = await createNamespace(server, 'watch-labels')
    const label = (name: string, tier: string) =>
      server.call(configMapsPath(namespace, name), {
        method: 'PATCH',
        type: 'application/merge-patch+json',
        body: { metadata: { labels: { tier } } },
      })
    const watch = await server.watch(`${configMapsPath(namespace)}?watch=1&labelSelector=tier=x`)
    await server.call(configMapsPath(namespace), { body: configMap('a', {}, { labels: { tier: 'y' } }) })
    await label('a', 'x')
    await label('a', 'z')
    const entered = await watch.next()
    const left = await watch.next()
    assert.deepEqual([entered?.type, left?.type], ['ADDED', 'DELETED'])
    assert.equal(left?.object.metadata.labels?.tier, 'x', 'it is shown as it last was in the selection')
    assert.ok(Number(left?.object.metadata.resourceVersion) > Number(entered?.object.metadata.resourceVersion))
    watch.stop()
  })

  test('a WatchList sends the objects, then the initial-events-end bookmark', async () => {
    const namespace = await createNamespace(server, 'watch-list')
    await server.call(configMapsPath(namespace), { body: configMap('a') })
    const watch = await server.watch(
      `${configMapsPath(namespace)}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
    )
    assert.equal((await watch.next())?.type, 'ADDED')
    const bookmark = await watch.next()
    assert.equal(bookmark?.type, 'BOOKMARK')
    assert.equal(bookmark?.object.metadata.annotations?.['k8s.io/initial-events-end'], 'true')
    watch.stop()
    assert.equal((await server.call(`${configMapsPath(namespace)}?watch=1&sendInitialEvents=true`)).code, 422)
  })

  test('timeoutSeconds ends a watch cleanly', async () => {
    const watch = await server.watch(`${configMapsPath('watch-none')}?watch=1&timeoutSeconds=1`)
    assert.equal(await watch.next(), undefined)
  })
})
