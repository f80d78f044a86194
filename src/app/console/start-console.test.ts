import { deepEqual, equal } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { eventually } from '../../../test/support/eventually.ts'
import { oarlockResources, runResource, stackResource, workerResource } from '../../api/index.ts'
import type { Session } from '../../console/protocol/index.ts'
import { gatewayKinds, partitionResource } from '../../gateway/index.ts'
import { Manager, silentLog } from '../../kubernetes/controller/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { startConsole } from './start-console.ts'

for (const { name, kinds, partitions, features } of [
  {
    name: 'an API server with Partitions has their table, also of those that appear later',
    kinds: gatewayKinds,
    partitions: ['home', 'east'],
    features: ['partitions'],
  },
  { name: 'one without the kind does not have it', kinds: [], partitions: [], features: [] },
])
  test(name, { timeout: 60_000 }, async t => {
    await using api = await startTestServer({ kinds: [...oarlockResources, ...kinds] })
    const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-console-'))
    const log = silentLog
    const manager = new Manager({ client: api.client, log })
    const controllers = {
      stacks: manager.informer(stackResource),
      runs: manager.informer(runResource),
      workers: manager.informer(workerResource),
    }
    const console_ = startConsole({
      ...{ dataDir, manager, controllers, client: api.client, version: 'test', registry: new Registry(), log, settings: {} },
      connect: async () => api.client,
      administrator: { user: { name: 'admin', groups: [] }, linkToken: 'x'.repeat(32) },
    })
    const http = createServer(
      (request, response) => void console_.server.handle((request.url ?? '').split('?', 1)[0] as string, request, response),
    )
    await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
    t.after(async () => {
      await console_.close()
      http.close()
      http.closeAllConnections()
      await manager.stop()
      rmSync(dataDir, { recursive: true, force: true })
    })
    await manager.start()
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/console/api/session`
    const signIn = async () => {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ link: console_.issueLink() }),
      })
      equal(response.status, 200)
      return ((await response.json()) as Session).features
    }
    deepEqual(await signIn(), [])
    for (const [number, name] of partitions.entries())
      await api.client.resource(partitionResource).create({ metadata: { name }, spec: { number, roles: ['Tenants'] } })
    await eventually(async () => JSON.stringify(await signIn()) === JSON.stringify(features), `the features ${features}`, 30_000)
  })
