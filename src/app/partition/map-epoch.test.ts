import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { copyAnnotations } from '../../controllers/replication/index.ts'
import { partitionResource } from '../../gateway/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { MapEpoch } from './map-epoch.ts'

test('the epoch is the newest version that a copy of a Partition had at home, of those that exist and of changes', async () => {
  await using server = await startTestServer({ kinds: [partitionResource] })
  const partitions = server.client.resource(partitionResource)
  const create = (name: string, number: number, version: string) =>
    partitions.create({ metadata: { name, annotations: { [copyAnnotations.homeVersion]: version } }, spec: { number, roles: [] } })
  await create('a', 1, '70')
  await create('b', 2, '50')
  const abort = new AbortController()
  const epoch = new MapEpoch()
  equal(epoch.value, undefined)
  const raised: (number | undefined)[] = []
  const following = epoch.follow(server.client, {
    signal: abort.signal,
    onRaised: () => raised.push(epoch.value),
    onError: () => {},
  })
  await eventually(() => epoch.value === 70, 'the copies')
  await create('c', 3, '90')
  await eventually(() => epoch.value === 90, 'the change')
  deepEqual(raised, [70, 90])
  abort.abort()
  await following
})
