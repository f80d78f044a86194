import { deepEqual, equal } from 'node:assert/strict'
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
