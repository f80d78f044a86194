import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { InMemoryApi } from '../../../test/support/in-memory-api.ts'
import { createClient } from '../../kubernetes/client/index.ts'
import { watchOwnWorker } from './worker-watches.ts'

const path = '/apis/oarlock.dev/v1alpha1/workers/w'

async function watchUntilDeleted(prepare: (api: InMemoryApi) => void, onWorker: (api: InMemoryApi) => void): Promise<string[]> {
  const api = await InMemoryApi.start()
  const client = await createClient({ cluster: { server: api.server.url } })
  const stop = new AbortController()
  const recorded: string[] = []
  prepare(api)
  await watchOwnWorker({
    ...{ client, name: 'w', signal: stop.signal, startAfterMs: 0 },
    onWorker: ({ metadata }) => {
      recorded.push(metadata.name)
      onWorker(api)
    },
    onDeleted: () => {
      recorded.push('deleted')
      stop.abort()
    },
    onError: error => void recorded.push(String(error)),
  })
  await client.close()
  await api.close()
  return recorded
}

test('a worker whose object was deleted before its watch started observes the deletion', async () =>
  deepEqual(
    await watchUntilDeleted(
      () => {},
      () => {},
    ),
    ['deleted'],
  ))

test('a worker whose object is deleted while it is watched observes the deletion', async () =>
  deepEqual(
    await watchUntilDeleted(
      api => void api.put(path),
      api => void setImmediate(() => api.remove(path)),
    ),
    ['w', 'deleted'],
  ))
