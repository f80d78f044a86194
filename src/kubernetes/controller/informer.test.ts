import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { eventually } from '../../../test/support/eventually.ts'
import { InMemoryApi } from '../../../test/support/in-memory-api.ts'
import { type ConfigMapBody, configMapResource, createClient } from '../client/index.ts'
import type { KubeObject } from '../object/index.ts'
import { Informer, type InformerOptions } from './index.ts'

const path = (name: string) => `/api/v1/namespaces/a/configmaps/${name}`
const fast = { backoff: { minMs: 2, maxMs: 10 } }
type ConfigMap = KubeObject<ConfigMapBody>

async function withInformer(
  run: (context: {
    api: InMemoryApi
    informer: Informer<ConfigMapBody>
    reported: string[]
    object: (name: string, version: number, fields?: object) => ConfigMap
  }) => Promise<void>,
  options: InformerOptions<ConfigMapBody> = {},
  prepare: (api: InMemoryApi) => void = () => undefined,
) {
  const api = await InMemoryApi.start()
  prepare(api)
  const client = await createClient({ cluster: { server: api.server.url } })
  const informer = new Informer({ client, resource: configMapResource, listWatch: fast, ...options })
  const stop = new AbortController()
  const reported: string[] = []
  informer.onChange({
    added: ({ metadata }, isInitial) => void reported.push(`${isInitial ? 'initial' : 'added'} ${metadata.name}`),
    updated: (old, { metadata }) =>
      void reported.push(`updated ${metadata.name} ${old.metadata.resourceVersion}>${metadata.resourceVersion}`),
    deleted: ({ metadata }) => void reported.push(`deleted ${metadata.name}`),
  })
  const running = informer.start(stop.signal)
  const object = (name: string, version: number, fields: object = {}): ConfigMap => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'a', uid: `u${name}`, resourceVersion: String(version), creationTimestamp: '', ...fields },
  })
  try {
    await informer.whenSynced()
    await eventually(() => api.watchers === 1, 'the watch')
    await run({ api, informer, reported, object })
  } finally {
    stop.abort()
    await running
    await client.close()
    await api.close()
  }
}

test('the cache follows the server, maintains its indexes, drops managedFields and reports each change once', async () => {
  await withInformer(
    async ({ api, informer, reported }) => {
      equal(informer.get('a/x')?.metadata.managedFields, undefined)
      api.put(path('y'), { data: { color: 'red' } })
      await eventually(() => informer.size === 2, 'y')
      api.put(path('y'), { data: { color: 'blue' } })
      await eventually(() => informer.byIndex('color', 'blue').length === 1, 'y is indexed under blue')
      deepEqual([informer.indexKeys('color', 'blue').length, informer.indexKeys('color', 'red')], [1, []])
      deepEqual(informer.byIndex('color', 'red'), [])
      deepEqual([informer.list('a').length, informer.list('b').length, informer.list().length], [2, 0, 2])
      // The same event a second time, as after a reconnect.
      api.sendRaw(`${JSON.stringify({ type: 'ADDED', object: informer.get('a/y') })}\n`)
      api.remove(path('x'))
      await eventually(() => informer.size === 1, 'x is deleted')
      deepEqual(reported, ['initial x', 'added y', 'updated y 102>103', 'deleted x'])
      throws(() => informer.byIndex('shape', 'round'), /has no index "shape"; known indexes: color/)
    },
    { indexes: { color: ({ data }) => (data?.color ? [data.color] : []) } },
    api => api.put(path('x'), { metadata: { managedFields: [{ manager: 'm' }] } }),
  )
})

test('changes missed while disconnected are reported: deleted, updated, and recreated under the same name', async () => {
  await withInformer(
    async ({ api, informer, reported }) => {
      api.intercept = () => true
      api.breakWatches()
      api.remove(path('gone'))
      api.remove(path('recreated'))
      api.put(path('recreated'))
      api.put(path('changed'), { data: { x: '2' } })
      api.compact()
      api.intercept = undefined
      api.server.closeConnections()
      await eventually(() => informer.size === 2 && informer.get('a/changed')?.data?.x === '2', 'equal again')
      deepEqual(reported.slice(3).sort(), ['added recreated', 'deleted gone', 'deleted recreated', 'updated changed 103>107'])
    },
    {},
    api => {
      for (const name of ['gone', 'recreated', 'changed']) api.put(path(name))
    },
  )
})

test('applyLocal puts a newer response into the cache and never restores a deleted object', async () => {
  await withInformer(
    async ({ api, informer, reported, object }) => {
      equal(informer.applyLocal(object('x', 100)), false, 'older than the cache')
      equal(informer.applyLocal(object('ghost', 101)), false, 'the cache has seen 101, so this was deleted since')
      equal(informer.applyLocal(object('x', 105)), true)
      equal(informer.applyLocal(object('new', 106)), true)
      equal(informer.applyLocal(object('elsewhere', 107, { namespace: 'b' })), true)
      deepEqual([informer.get('a/x')?.metadata.resourceVersion, informer.size], ['105', 3])
      api.put(path('x'), { metadata: { uid: 'ux' } })
      api.bookmark()
      deepEqual(reported, ['initial x', 'updated x 101>105', 'added new', 'added elsewhere'])
      api.compact()
      api.breakWatches()
      await eventually(() => api.watchers === 1 && informer.lastError === undefined, 'the second list is complete')
      deepEqual(
        [informer.get('a/x')?.metadata.resourceVersion, informer.get('a/new')?.metadata.resourceVersion],
        ['105', '106'],
        'a list that is older than the write does not revert it',
      )
      for (let version = 0; version < 6; version++) api.put('/api/v1/namespaces/a/secrets/s')
      api.compact()
      api.breakWatches()
      await eventually(() => informer.size === 1, 'a newer list without the objects removes them')
      equal(informer.get('a/x')?.metadata.resourceVersion, '102')
    },
    {},
    api => api.put(path('x'), { metadata: { uid: 'ux' } }),
  )
})

test('applyLocal ignores objects outside the selection of the informer', async () => {
  await withInformer(
    async ({ informer, object }) => {
      equal(informer.applyLocal(object('x', 200, { labels: { set: 'b' } })), false)
      equal(informer.applyLocal(object('y', 200, { labels: { set: 'a' }, namespace: 'b' })), false)
      equal(informer.applyLocal(object('z', 200, { labels: { set: 'a' } })), true)
    },
    { namespace: 'a', labelSelector: 'set=a' },
  )
})

test('late events do not restore a deleted object; an object that matches the selector again is added', async () => {
  await withInformer(
    async ({ api, informer, reported, object }) => {
      api.remove(path('x'))
      await eventually(() => informer.size === 0, 'x is deleted')
      const send = (type: string, version: number) =>
        api.sendRaw(`${JSON.stringify({ type, object: object('x', version, { uid: 'ux', labels: { set: 'a' } }) })}\n`)
      send('MODIFIED', 101)
      api.bookmark()
      api.put(path('y'), { metadata: { labels: { set: 'a' } } })
      await eventually(() => informer.size > 0, 'y, after the late event')
      equal(informer.get('a/x'), undefined)
      // A later version of the same object: its label was changed and changed back.
      send('ADDED', 105)
      await eventually(() => informer.get('a/x') !== undefined, 'x matches again')
      deepEqual(reported, ['initial x', 'deleted x', 'added y', 'added x'])
    },
    { labelSelector: 'set=a' },
    api => void api.put(path('x'), { metadata: { uid: 'ux', labels: { set: 'a' } } }),
  )
})

test('the response to a delete, and to a write that removes an object from the selection, takes effect immediately', async () => {
  await withInformer(
    async ({ api, informer, reported, object }) => {
      equal(informer.applyLocalDelete('a/x', 'another'), false, 'an object that was recreated under this name is not the deleted one')
      equal(informer.applyLocalDelete('a/x', 'ux'), true)
      equal(informer.applyLocal(object('y', 110, { labels: { set: 'b' } })), true)
      deepEqual([informer.size, reported], [0, ['initial x', 'initial y', 'deleted x', 'deleted y']])
      // Events that were in flight arrive now and change nothing.
      for (const name of ['x', 'y']) api.put(path(name), { metadata: { labels: { set: 'a' } } })
      api.remove(path('x'))
      api.put(path('z'), { metadata: { labels: { set: 'a' } } })
      await eventually(() => informer.get('a/z') !== undefined, 'z')
      deepEqual(reported.slice(4), ['added z'])
    },
    { labelSelector: 'set=a' },
    api => {
      for (const name of ['x', 'y']) api.put(path(name), { metadata: { uid: `u${name}`, labels: { set: 'a' } } })
    },
  )
})

test('handlers and indexes receive frozen objects; an object for which the transform throws is kept unchanged', async () => {
  const rejected: string[] = []
  const vandalize = (object: ConfigMap) => {
    try {
      if (object.data) object.data.color = 'mine'
      else rejected.push('no data')
    } catch (error) {
      rejected.push((error as Error).message.split(' of ')[0] ?? '')
    }
  }
  await withInformer(
    async ({ api, informer }) => {
      informer.onChange({
        changed: change => {
          vandalize(change.object)
          if (change.type === 'updated') vandalize(change.old)
        },
      })
      api.put(path('x'), { data: { color: 'blue' } })
      await eventually(() => informer.get('a/x')?.data?.color === 'blue', 'the update')
      api.put(path('odd'), { data: { color: 'odd' } })
      await eventually(() => informer.get('a/odd') !== undefined, 'the object for which the transform throws')
      deepEqual([informer.get('a/odd')?.data?.color, informer.get('a/x')?.metadata.annotations], ['odd', undefined])
      deepEqual([...new Set(rejected)], ["Cannot assign to read only property 'color'"])
      equal(rejected.length, 8, 'four in the index, four in the handler')
    },
    {
      hotObjects: 1,
      indexes: {
        vandal: object => {
          vandalize(object)
          return []
        },
      },
      transform: object => {
        if (object.metadata.name === 'odd') throw new Error('odd')
        delete object.metadata.annotations
        return object
      },
    },
    api => api.put(path('x'), { metadata: { annotations: { a: 'b' } }, data: { color: 'red' } }),
  )
})

test('a handler or an index function that throws does not affect the others', async () => {
  await withInformer(
    async ({ api, informer, reported }) => {
      informer.onChange({
        added: () => {
          throw new Error('handler')
        },
      })
      const late: string[] = []
      informer.onChange({ added: ({ metadata }, isInitial) => void late.push(`${metadata.name} ${isInitial}`) })
      api.put(path('y'))
      await eventually(() => late.length === 2, 'a handler that is added later gets existing and new objects')
      deepEqual(late, ['x true', 'y false'])
      deepEqual(reported, ['initial x', 'added y'])
    },
    {
      indexes: {
        broken: () => {
          throw new Error('index')
        },
      },
    },
    api => api.put(path('x')),
  )
})

test('invariant 6: after random changes and faults the cache and the handlers’ last states equal the server', async () => {
  const name = fc.constantFrom('p', 'q', 'r')
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('put' as const), name }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), name }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constantFrom('cut' as const, 'end' as const, 'compact' as const, 'garbage' as const, 'bookmark' as const),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('late' as const),
        count: fc.integer({ min: 1, max: 4 }),
        skipped: fc.integer({ min: 0, max: 3 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 4 }) }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async steps => {
      await withInformer(async ({ api, informer }) => {
        const seen = new Map<string, string>()
        informer.onChange({
          added: ({ metadata }) => void seen.set(metadata.name, metadata.resourceVersion),
          updated: (_old, { metadata }) => void seen.set(metadata.name, metadata.resourceVersion),
          deleted: ({ metadata }) => void seen.delete(metadata.name),
        })
        for (const step of steps) {
          if (step.do === 'put') api.put(path(step.name))
          if (step.do === 'remove') api.remove(path(step.name))
          if (step.do === 'cut') api.breakWatches()
          if (step.do === 'end') api.endWatches()
          if (step.do === 'compact') api.compact()
          if (step.do === 'garbage') api.sendRaw('{"type":"ADD')
          if (step.do === 'bookmark') api.bookmark()
          if (step.do === 'late') api.resendEvents(step.count, step.skipped)
          if (step.do === 'wait') await new Promise(resolve => setTimeout(resolve, step.ms))
        }
        const want = () => JSON.stringify(api.list('/api/v1/configmaps').map(({ metadata }) => [metadata.name, metadata.resourceVersion]))
        const got = (entries: Iterable<[string, string]>) => JSON.stringify([...entries].sort())
        // A truncated line is detected only when more data arrives.
        api.sendRaw('\n')
        await eventually(
          () => got(informer.list().map(({ metadata }) => [metadata.name, metadata.resourceVersion])) === want(),
          'the cache equals the server',
        )
        equal(got(seen), want())
      })
    }),
    { numRuns: 100 },
  )
})

test('the watch echo of a write that is already cached is not parsed, and no other line is skipped', async () => {
  await withInformer(
    async ({ api, informer, reported, object }) => {
      // The response to a write at 110 (of a recreated x, by its UID); then the watch delivers it, with a field that shows whether it was parsed.
      equal(informer.applyLocal(object('x', 110, { labels: { from: 'answer' } })), true)
      const echo = { type: 'MODIFIED', object: object('x', 110, { labels: { from: 'watch' } }) }
      api.sendRaw(`${JSON.stringify(echo)}\n`)
      // Another object with version 111 in a field before its metadata: not an echo, because its UID differs.
      equal(informer.applyLocal(object('x', 111)), true)
      const other = { note: { resourceVersion: '111' }, ...object('z', 112) }
      api.sendRaw(`${JSON.stringify({ type: 'ADDED', object: other })}\n`)
      await eventually(() => informer.get('a/z') !== undefined, 'z')
      equal(informer.get('a/x')?.metadata.resourceVersion, '111')
      api.sendRaw(`${JSON.stringify({ type: 'MODIFIED', object: object('x', 113) })}\n`)
      await eventually(() => informer.get('a/x')?.metadata.resourceVersion === '113', 'x at a newer version')
      deepEqual(reported, ['initial x', 'deleted x', 'added x', 'updated x 110>111', 'added z', 'updated x 111>113'])
    },
    {},
    api => void api.put(path('x')),
  )
})
