import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { InMemoryApi } from '../../../test/support/in-memory-api.ts'
import { respondStatus } from '../../../test/support/scripted-server.ts'
import { createClient } from '../../kubernetes/client/index.ts'
import { listAssignedRuns, watchAssignedRuns, watchOwnWorker } from './worker-watches.ts'

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

test('each selection of Runs is watched on its own: one that is not answered delays no other, and neither removes Runs of the other', async () => {
  const api = await InMemoryApi.start()
  const client = await createClient({ cluster: { server: api.server.url } })
  const stop = new AbortController()
  const recorded: string[] = []
  const pathOf = (namespace: string, name: string) => `/apis/oarlock.dev/v1alpha1/namespaces/${namespace}/runs/${name}`
  const record = (what: string) => (run: { metadata: { name: string } }) => void recorded.push(`${what} ${run.metadata.name}`)
  let isDown = true
  api.intercept = ({ path }, response) => {
    if (!isDown || !path.includes('/namespaces/default/')) return false
    respondStatus(response, 503, 'ServiceUnavailable')
    return true
  }
  const until = (wanted: string) => eventually(() => recorded.includes(wanted), wanted)
  api.put(pathOf('a', 'a1'))
  api.put(pathOf('default', 'd1'))
  const watching = watchAssignedRuns({
    ...{ client, name: 'w', signal: stop.signal, selections: [{ namespace: 'a' }, { namespace: 'default' }] },
    onReplace: runs => void recorded.push(`all ${runs.map(({ metadata }) => metadata.name).sort()}`),
    onRun: record('run'),
    onRemoved: record('removed'),
    onError: () => {},
  })
  await until('all a1')
  api.put(pathOf('a', 'a2'))
  await until('run a2')
  deepEqual((await listAssignedRuns(client, 'w', [{ namespace: 'a' }, { namespace: 'default' }])).length, 2)
  isDown = false
  await until('all a1,a2,d1')
  api.remove(pathOf('a', 'a1'))
  await until('removed a1')
  stop.abort()
  await watching
  await client.close()
  await api.close()
  deepEqual(recorded, ['all a1', 'run a2', 'all a1,a2,d1', 'removed a1'])
})
