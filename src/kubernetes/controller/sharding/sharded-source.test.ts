import { deepEqual, equal } from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { respondJson, startScriptedServer } from '../../../../test/support/scripted-server.ts'
import { configMapResource, createClient } from '../../client/index.ts'
import { Informer } from '../informer.ts'
import { bucketCount, bucketIndex, bucketLabel } from './bucket.ts'
import { ShardedSource } from './sharded-source.ts'

const map = (name: string, bucket: number, resourceVersion: number) => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap' },
  metadata: { name, namespace: 'a', uid: `u-${name}`, resourceVersion: String(resourceVersion), labels: { [bucketLabel]: String(bucket) } },
})
const event = (type: string, name: string, bucket: number, resourceVersion: number) => ({
  type,
  object: map(name, bucket, resourceVersion),
})

const wantedOf = (...buckets: number[]) => Uint8Array.from({ length: bucketCount }, (_, bucket) => (buckets.includes(bucket) ? 1 : 0))

test('a merged watch does not bring back what was deleted before the list of a gained bucket', async () => {
  // Bucket 1 is quiet since version 100; the list of bucket 2 is of version 200.
  const lists: Record<string, { resourceVersion: number; items: object[] }> = {
    [`${bucketLabel} in (1)`]: { resourceVersion: 100, items: [map('one', 1, 90)] },
    [`${bucketLabel} in (2)`]: { resourceVersion: 200, items: [map('two', 2, 190)] },
  }
  const repeated = [
    event('ADDED', 'deleted', 2, 120),
    event('MODIFIED', 'deleted', 2, 150),
    event('DELETED', 'deleted', 2, 180),
    event('ADDED', 'two', 2, 190),
    event('ADDED', 'one-more', 1, 195),
    event('MODIFIED', 'two', 2, 210),
  ]
  const server = await startScriptedServer(({ query }, response) => {
    const selector = query.get('labelSelector') ?? ''
    if (query.get('watch') === null) {
      const { resourceVersion, items } = lists[selector]!
      respondJson(response, { kind: 'ConfigMapList', apiVersion: 'v1', metadata: { resourceVersion: String(resourceVersion) }, items })
      return
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    if (selector !== `${bucketLabel} in (1,2)`) return
    equal(query.get('resourceVersion'), '100')
    for (const line of repeated) response.write(`${JSON.stringify(line)}\n`)
  })
  const client = await createClient({ cluster: { server: server.url, namespace: 'a' } })
  const stop = new AbortController()
  const source = new ShardedSource({
    by: 'owned',
    labelSelector: undefined,
    keysOf: bucket => informer.indexKeys(bucketIndex, String(bucket)),
    onSynced: () => undefined,
  })
  const informer: Informer<object> = new Informer<object>({
    client,
    resource: configMapResource,
    source,
    indexes: { [bucketIndex]: ({ metadata }) => [metadata.labels?.[bucketLabel] ?? ''] },
    listWatch: { streamLists: false },
  })
  const changes: string[] = []
  informer.onChange({
    changed: ({ type, object: { metadata } }) => void changes.push(`${type} ${metadata.name} ${metadata.resourceVersion}`),
  })
  try {
    source.setWanted(wantedOf(1))
    const running = informer.start(stop.signal)
    await eventually(() => source.isFilled, 'bucket 1')
    source.setWanted(wantedOf(1, 2))
    await eventually(() => source.isFilled && source.watches === 2, 'bucket 2')
    await eventually(() => changes.includes('updated two 210'), 'the events of the merged watch')
    deepEqual(changes, ['added one 90', 'added two 190', 'added one-more 195', 'updated two 210'])
    stop.abort()
    await running
  } finally {
    stop.abort()
    await client.close()
    await server.close()
  }
})

/** A cache of buckets 1 and 2, each with its own watch, and one object `moving` in bucket 1. */
async function withTwoWatches(
  run: (context: {
    informer: Informer<object>
    /** Sends an event on the watch of a bucket, and resolves when it was received. */
    send: (bucket: number, line: ReturnType<typeof event>) => Promise<void>
    /** Sends the last event on the watch of a bucket. */
    end: (bucket: number, line: object) => void
    deleted: string[]
  }) => Promise<void>,
) {
  const watches = new Map<string, ServerResponse>()
  const selectorOf = (bucket: number) => `${bucketLabel} in (${bucket})`
  let lists = 0
  const server = await startScriptedServer(({ query }, response) => {
    const selector = query.get('labelSelector') ?? ''
    if (query.get('watch') !== null) {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.flushHeaders()
      watches.set(selector, response)
      return
    }
    // The third list is that of bucket 1 after its watch expired.
    const items = selector !== selectorOf(1) ? [] : lists > 1 ? [] : [map('moving', 1, 90)]
    respondJson(response, { kind: 'ConfigMapList', apiVersion: 'v1', metadata: { resourceVersion: lists > 1 ? '500' : '100' }, items })
    lists++
  })
  const client = await createClient({ cluster: { server: server.url, namespace: 'a' } })
  const stop = new AbortController()
  const source = new ShardedSource({
    by: 'owned',
    labelSelector: undefined,
    keysOf: bucket => informer.indexKeys(bucketIndex, String(bucket)),
    onSynced: () => undefined,
  })
  const informer: Informer<object> = new Informer<object>({
    client,
    resource: configMapResource,
    source,
    indexes: { [bucketIndex]: ({ metadata }) => [metadata.labels?.[bucketLabel] ?? ''] },
    listWatch: { streamLists: false, backoff: { minMs: 1, maxMs: 5 } },
  })
  const deleted: string[] = []
  informer.onChange({
    deleted: ({ metadata }) => void deleted.push(`${metadata.name} of ${metadata.labels?.[bucketLabel]}`),
  })
  let markers = 0
  const send = async (bucket: number, line: ReturnType<typeof event>) => {
    const marker = event('ADDED', `marker-${++markers}`, bucket, Number(line.object.metadata.resourceVersion))
    for (const sent of [line, marker]) watches.get(selectorOf(bucket))?.write(`${JSON.stringify(sent)}\n`)
    await eventually(() => informer.has(`a/${marker.object.metadata.name}`), `the events of bucket ${bucket}`)
  }
  try {
    source.setWanted(wantedOf(1))
    const running = informer.start(stop.signal)
    await eventually(() => watches.size === 1, 'the watch of bucket 1')
    source.setWanted(wantedOf(1, 2))
    await eventually(() => watches.size === 2 && source.isFilled, 'the watch of bucket 2')
    const end = (bucket: number, line: object) => void watches.get(selectorOf(bucket))?.end(`${JSON.stringify(line)}\n`)
    await run({ informer, send, end, deleted })
    stop.abort()
    await running
  } finally {
    stop.abort()
    await client.close()
    await server.close()
  }
}

const seen = (informer: Informer<object>) => {
  const metadata = informer.get('a/moving')?.metadata
  return metadata && `${metadata.labels?.[bucketLabel]} at ${metadata.resourceVersion}`
}

for (const { name, steps, want } of [
  {
    name: 'to the other watch, which delivers it first',
    steps: [
      [2, 'ADDED', 2, 110],
      [1, 'DELETED', 1, 110],
    ],
    want: '2 at 110',
  },
  {
    name: 'to the other watch, which delivers it last',
    steps: [
      [1, 'DELETED', 1, 110],
      [2, 'ADDED', 2, 110],
    ],
    want: '2 at 110',
  },
  {
    name: 'and back, and the other watch is late',
    steps: [
      [1, 'DELETED', 1, 110],
      [1, 'ADDED', 1, 120],
      [2, 'ADDED', 2, 110],
      [2, 'DELETED', 2, 120],
    ],
    want: '1 at 120',
  },
  {
    name: 'and back, and the first watch is late',
    steps: [
      [2, 'ADDED', 2, 110],
      [2, 'DELETED', 2, 120],
      [1, 'DELETED', 1, 110],
      [1, 'ADDED', 1, 120],
    ],
    want: '1 at 120',
  },
  {
    name: 'and is deleted there',
    steps: [
      [1, 'DELETED', 1, 110],
      [2, 'ADDED', 2, 110],
      [2, 'DELETED', 2, 130],
    ],
    want: undefined,
  },
  {
    name: 'and is deleted there, which a repeated event does not undo',
    steps: [
      [2, 'ADDED', 2, 110],
      [2, 'DELETED', 2, 130],
      [2, 'ADDED', 2, 110],
    ],
    want: undefined,
  },
] as { name: string; steps: [watch: number, type: string, bucket: number, version: number][]; want: string | undefined }[])
  test(`an object whose bucket label changes ${name}`, async () => {
    await withTwoWatches(async ({ informer, send }) => {
      for (const [watch, type, bucket, version] of steps) await send(watch, event(type, 'moving', bucket, version))
      equal(seen(informer), want)
    })
  })

test('an object that moved to another watch returns although the list of the first watch, without it, is newer', async () => {
  await withTwoWatches(async ({ informer, send, end }) => {
    await send(1, event('ADDED', 'other', 1, 105))
    const expired = { type: 'ERROR', object: { kind: 'Status', apiVersion: 'v1', code: 410, reason: 'Expired', message: 'too old' } }
    end(1, expired)
    await eventually(() => !informer.has('a/moving'), 'the list without the object')
    await send(2, event('ADDED', 'moving', 2, 110))
    equal(seen(informer), '2 at 110')
  })
})

test('an object whose bucket label becomes invalid leaves the cache although the watch still selects it', async () => {
  await withTwoWatches(async ({ informer, send, deleted }) => {
    const nonsense = event('MODIFIED', 'moving', 1, 110)
    await send(1, { ...nonsense, object: map('moving', Number.NaN, 110) })
    equal(seen(informer), undefined)
    deepEqual(deleted, ['moving of 1'])
    await send(1, event('MODIFIED', 'moving', 1, 120))
    equal(seen(informer), '1 at 120')
  })
})

test('an object that the watch of another bucket delivers too stays in the cache', async () => {
  await withTwoWatches(async ({ informer, send, deleted }) => {
    await send(2, event('MODIFIED', 'moving', 1, 110))
    equal(seen(informer), '1 at 90')
    deepEqual(deleted, [])
  })
})
