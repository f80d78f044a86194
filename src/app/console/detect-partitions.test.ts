import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { gatewayKinds } from '../../gateway/index.ts'
import { createClient, installKinds, type RequestOptions, type Response, WrappedClient } from '../../kubernetes/client/index.ts'
import { type Log, silentLog } from '../../kubernetes/controller/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { detectPartitions } from './detect-partitions.ts'

class CountingClient extends WrappedClient {
  count = 0
  override async request(options: RequestOptions): Promise<Response> {
    this.count++
    return await super.request(options)
  }
}

test('a kind that is installed later is detected, once, and no request follows', { timeout: 60_000 }, async t => {
  await using api = await startTestServer()
  const client = new CountingClient(api.client)
  let detected = 0
  const warnings: string[] = []
  const log: Log = { ...silentLog, warn: (_fields, message) => void warnings.push(message) }
  t.after(detectPartitions({ client, log, intervalMs: 10, onDetected: () => detected++ }))
  await eventually(async () => client.count >= 3, 'more requests')
  equal(detected, 0)
  await installKinds(api.client, gatewayKinds)
  await eventually(async () => detected > 0, 'the kind')
  const { count } = client
  await new Promise(resolve => setTimeout(resolve, 100))
  deepEqual([detected, client.count, warnings], [1, count, []])
})

test('without the right to list them a warning is logged once', { timeout: 60_000 }, async t => {
  await using api = await startTestServer({ kinds: gatewayKinds })
  const limited = await createClient({ kubeconfig: api.kubeconfigPath, impersonate: { user: 'eve', groups: [] } })
  const client = new CountingClient(limited)
  const warnings: string[] = []
  const log: Log = { ...silentLog, warn: (_fields, message) => void warnings.push(message) }
  const stop = detectPartitions({ client, log, intervalMs: 10, onDetected: () => warnings.push('detected') })
  t.after(() => limited.close())
  await eventually(async () => client.count >= 3, 'more requests')
  stop()
  deepEqual(warnings, ['the console does not show partitions: it cannot list them'])
  const { count } = client
  await new Promise(resolve => setTimeout(resolve, 100))
  equal(client.count, count, 'no request after the end')
})
