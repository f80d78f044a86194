import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { InMemoryApi } from '../../../test/support/in-memory-api.ts'
import { type Client, configMapResource, createClient, eventResource } from '../client/index.ts'
import type { KubeObject } from '../object/index.ts'
import { addFinalizer, createOrPatch, EventRecorder, mergeDiff, patchStatusIfChanged, predicates, removeFinalizer } from './index.ts'

const path = (name: string) => `/api/v1/namespaces/a/configmaps/${name}`

async function withApi(run: (context: { api: InMemoryApi; client: Client; writes: () => string[] }) => Promise<void>) {
  const api = await InMemoryApi.start()
  const client = await createClient({ cluster: { server: api.server.url, namespace: 'a' } })
  try {
    await run({
      api,
      client,
      writes: () => api.server.requests.filter(({ method }) => method !== 'GET').map(({ method, body }) => `${method} ${body}`),
    })
  } finally {
    await client.close()
    await api.close()
  }
}

for (const { before, after, want } of [
  { before: { a: 1 }, after: { a: 1 }, want: undefined },
  { before: { a: 1, b: 2 }, after: { a: 1, b: 3 }, want: { b: 3 } },
  { before: { a: 1, b: 2 }, after: { a: 1 }, want: { b: null } },
  { before: { a: 1 }, after: { a: undefined }, want: { a: null } },
  { before: { a: undefined }, after: {}, want: undefined },
  { before: { a: { b: 1, c: [1] } }, after: { a: { b: 1, c: [1, 2] } }, want: { a: { c: [1, 2] } } },
  { before: { a: { b: 1 } }, after: { a: [1] }, want: { a: [1] } },
  { before: {}, after: { a: { b: 1 } }, want: { a: { b: 1 } } },
]) {
  test(`the difference of ${JSON.stringify(before)} and ${JSON.stringify(after)} is ${JSON.stringify(want)}`, () =>
    deepEqual(mergeDiff(before, after), want))
}

test('merging the difference yields the desired value', () => {
  const leaf = fc.oneof(fc.integer(), fc.string(), fc.array(fc.integer(), { maxLength: 2 }))
  const key = fc.constantFrom('a', 'b', 'c')
  const plain = { noNullPrototype: true }
  const tree = fc.dictionary(key, fc.oneof(leaf, fc.dictionary(key, fc.oneof(leaf, fc.dictionary(key, leaf, plain)), plain)), plain)
  const merge = (target: unknown, patch: unknown): unknown => {
    if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
    const result: Record<string, unknown> = typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {}
    for (const [name, value] of Object.entries(patch)) {
      if (value === null) delete result[name]
      else result[name] = merge(result[name], value)
    }
    return result
  }
  fc.assert(fc.property(tree, tree, (before, after) => deepEqual(merge(before, mergeDiff(before, after) ?? {}), after)))
})

test('a status is written only if it differs, as a difference, and only over the version that was read', async () => {
  await withApi(async ({ api, client, writes }) => {
    type Body = { status?: { ready?: boolean; note?: string } }
    const handle = client.resource<Body>(configMapResource as never)
    const object = api.put(path('x'), { status: { ready: false, note: 'n' } }) as unknown as KubeObject<Body>
    equal(await patchStatusIfChanged(handle, object, { ready: false, note: 'n' }), object)
    deepEqual(writes(), [])
    await patchStatusIfChanged(handle, object, { ready: true })
    deepEqual(writes(), ['PATCH {"status":{"note":null,"ready":true},"metadata":{"resourceVersion":"101"}}'])
    await rejects(patchStatusIfChanged(handle, object, { ready: true }), { reason: 'Conflict' })
  })
})

test('finalizers are added and removed once; removing the last one of a deleted object is not an error', async () => {
  await withApi(async ({ api, client, writes }) => {
    const handle = client.resource(configMapResource)
    const object = await handle.get(api.put(path('x')).metadata.name)
    const held = await addFinalizer(handle, object, 'x.dev/f')
    deepEqual(held.metadata.finalizers, ['x.dev/f'])
    equal(await addFinalizer(handle, held, 'x.dev/f'), held)
    api.remove(path('x'))
    equal(await removeFinalizer(handle, held, 'x.dev/f'), held)
    equal(writes().length, 2)
  })
})

test('createOrPatch creates, patches the difference, or writes nothing', async () => {
  await withApi(async ({ client, writes }) => {
    const handle = client.resource(configMapResource)
    const bring = async (color: string) =>
      (
        await createOrPatch(handle, { name: 'x', namespace: 'a' }, current => ({
          ...current,
          metadata: { ...current?.metadata },
          data: { color },
        }))
      ).outcome
    deepEqual([await bring('red'), await bring('red'), await bring('blue')], ['created', 'unchanged', 'patched'])
    equal(writes()[1], 'PATCH {"data":{"color":"blue"},"metadata":{"resourceVersion":"101"}}')
  })
})

test('repeated Events increment a count, Events that differ only in text are combined, and floods are limited', async () => {
  await withApi(async ({ api, client }) => {
    let nowMs = 1_700_000_000_000
    const events = new EventRecorder({ client, component: 'test', wallMs: () => nowMs })
    const object = (await client.resource(configMapResource).get(api.put(path('x')).metadata.name)) as KubeObject<unknown>
    for (let repeat = 0; repeat < 3; repeat++) {
      events.normal(object, 'Same', 'again and again')
      await events.flush()
    }
    const stored = async () => (await client.resource(eventResource).list({ namespace: 'a' })).items
    deepEqual(
      (await stored()).map(({ reason, count, message }) => [reason, count, message]),
      [['Same', 3, 'again and again']],
    )
    for (let text = 0; text < 15; text++) events.warning(object, 'Many', `at ${text}`)
    await events.flush()
    const many = (await stored()).filter(({ reason }) => reason === 'Many')
    equal(many.length, 11)
    equal(many.find(({ message }) => message?.startsWith('(combined'))?.count, 5)
    for (let text = 0; text < 50; text++) events.normal(object, 'Flood', 'x')
    await events.flush()
    equal((await stored()).find(({ reason }) => reason === 'Flood')?.count, 7, '25 in a burst')
    nowMs += 300_000
    events.normal(object, 'Flood', 'x')
    events.normal(object, 'Flood', 'x')
    await events.flush()
    equal((await stored()).find(({ reason }) => reason === 'Flood')?.count, 8, 'one more each five minutes')
  })
})

test('predicates detect what changed', () => {
  const object = (metadata: object) => ({
    apiVersion: 'v1',
    kind: 'X',
    metadata: { name: 'x', uid: 'u', resourceVersion: '1', creationTimestamp: '', ...metadata },
  })
  const update = (old: object, next: object) => ({ type: 'updated' as const, old: object(old), object: object(next) })
  const { generationChanged, labelsChanged, annotationsChanged, and, or, not } = predicates
  const relabelled = update({ generation: 1 }, { generation: 1, labels: { a: 'b' } })
  deepEqual(
    [
      generationChanged,
      labelsChanged,
      annotationsChanged,
      and(labelsChanged, generationChanged),
      or(labelsChanged, generationChanged),
      not(labelsChanged),
    ].map(predicate => predicate(relabelled)),
    [false, true, false, false, true, false],
  )
  equal(generationChanged(update({ generation: 1 }, { generation: 1, deletionTimestamp: 'now' })), true)
  equal(generationChanged({ type: 'added', object: object({}), isInitial: true }), true)
})
