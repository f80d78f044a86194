import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { gatewayKinds, partitionResource } from '../../gateway/index.ts'
import { installKinds } from '../../kubernetes/client/index.ts'
import { defineResource, findCondition, Type } from '../../kubernetes/object/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { reportKinds } from './report-kinds.ts'

const boatResource = defineResource({
  ...{ group: 'harbor.example', version: 'v1', kind: 'Boat', plural: 'boats', scope: 'Cluster', description: 'A boat.' },
  spec: Type.Object({}),
  status: Type.Object({}),
})

test('a partition reports which kinds of home it does not serve, until it does', { timeout: 60_000 }, async t => {
  await using home = await startTestServer({ kinds: gatewayKinds })
  await using own = await startTestServer({ kinds: gatewayKinds })
  const partitions = home.client.resource(partitionResource)
  await partitions.create({ metadata: { name: 't1' }, spec: { number: 1, roles: ['Tenants'] } })
  const abort = new AbortController()
  t.after(() => abort.abort())
  const warned: string[] = []
  const log = { warn: (_: object, message: string) => void warned.push(message) }
  const options = { partition: 't1', home: home.client, local: own.client, signal: abort.signal, log, intervalMs: 50, confirmAfterMs: 20 }
  const reporting = reportKinds(options)
  const ready = async (status: string) => {
    const condition = findCondition((await partitions.get('t1')).status?.conditions, 'KindsMatch')
    return condition?.status === status ? [condition.reason, condition.message] : undefined
  }
  deepEqual(await eventually(() => ready('True'), 'the first report'), ['Compared', 'serves the kinds of home'])
  await installKinds(home.client, [boatResource])
  const difference = 'it does not serve boats.v1.harbor.example'
  deepEqual(await eventually(() => ready('False'), 'the difference'), ['KindsDiffer', difference])
  await installKinds(own.client, [boatResource])
  deepEqual(await eventually(() => ready('True'), 'no difference'), ['Compared', 'serves the kinds of home'])
  deepEqual(warned, ['this partition does not serve the kinds of home'])
  abort.abort()
  await reporting
})
