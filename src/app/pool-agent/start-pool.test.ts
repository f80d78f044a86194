import { deepEqual } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { oarlockResources, workerPoolResource } from '../../api/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { describeResource } from '../../kubernetes/object/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { startPool } from './start-pool.ts'

const crds = describeResource<Record<string, unknown>>({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
})

test('a WorkerPool without a spec, which an older CRD may accept, is reported and does not end the process', async t => {
  await using api = await startTestServer({ kinds: oarlockResources })
  const path = '/spec/versions/0/schema/openAPIV3Schema/required'
  await api.client.resource(crds).patch('workerpools.oarlock.dev', [{ op: 'remove', path }], { type: 'json' })
  const pools = api.client.resource(workerPoolResource)
  await eventually(async () => {
    await pools.create({ metadata: { name: 'bare' } } as Parameters<typeof pools.create>[0])
    return true
  }, 'the pool without a spec')
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-pool-'))
  t.after(() => rmSync(dataDir, { recursive: true }))
  const role = startPool({
    ...{ client: api.client, dataDir, pools: ['bare'], maxWorkers: 1, labels: {}, launcher: [], allowPaths: [], log: silentLog },
    joinEndpoint: async () => ({ url: api.client.server, caCertificate: '' }),
  })
  t.after(() => role.stop({ graceMs: 0 }))
  await role.whenReady
  deepEqual(role.notReady(), ['WorkerPool "bare" has no valid spec.mode: set it to Process'])
})
