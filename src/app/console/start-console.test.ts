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
import { type RequestOptions, type Response, type StreamResponse, WrappedClient } from '../../kubernetes/client/index.ts'
import { Manager, silentLog } from '../../kubernetes/controller/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { startConsole } from './start-console.ts'

/** With the requests for Partitions, and whether each was answered. */
class RecordingClient extends WrappedClient {
  readonly ofPartitions: { readonly path: string; isAnswered: boolean }[] = []

  override request(options: RequestOptions): Promise<Response> {
    return this.#record(options, super.request(options))
  }

  override stream(options: RequestOptions & { idleTimeoutMs?: number | undefined }): Promise<StreamResponse> {
    return this.#record(options, super.stream(options))
  }

  #record<T>({ path }: RequestOptions, response: Promise<T>): Promise<T> {
    if (!path.endsWith('/partitions')) return response
    const recorded = { path, isAnswered: false }
    this.ofPartitions.push(recorded)
    return response.finally(() => {
      recorded.isAnswered = true
    })
  }
}

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
    const client = new RecordingClient(api.client)
    const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-console-'))
    const log = silentLog
    const manager = new Manager({ client, log })
    const controllers = {
      stacks: manager.informer(stackResource),
      runs: manager.informer(runResource),
      workers: manager.informer(workerResource),
    }
    const console_ = startConsole({
      ...{ dataDir, manager, controllers, client, version: 'test', registry: new Registry(), log, settings: {} },
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
    await eventually(async () => client.ofPartitions[0]?.isAnswered, 'the first request for Partitions')
    deepEqual(await signIn(), [])
    for (const [number, name] of partitions.entries())
      await api.client.resource(partitionResource).create({ metadata: { name }, spec: { number, roles: ['Tenants'] } })
    await eventually(async () => JSON.stringify(await signIn()) === JSON.stringify(features), `the features ${features}`, 30_000)
    // Without the kind no list and no watch follow the first request.
    equal(client.ofPartitions.length > 1, kinds.length > 0)
  })
