import { deepEqual, equal, match } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Agent, fetch } from 'undici'
import { systemNamespace } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { describeResource } from '../../kubernetes/object/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { installOarlock } from '../controllers/install.ts'
import { startJoinProcess } from '../join/join-process.ts'
import { startStoresProcess } from '../stores/stores-process.ts'

const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1', scope: 'Cluster' } as const
const bindings = describeResource<{ roleRef: object; subjects: object[] }>({
  ...rbac,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
})
const accounts = describeResource<object>({
  ...{ group: '', version: 'v1' },
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  scope: 'Namespaced',
})

async function tokenOf(client: Client, name: string): Promise<string> {
  await client.resource(accounts).create({ metadata: { name, namespace: systemNamespace } })
  const path = `/api/v1/namespaces/${systemNamespace}/serviceaccounts/${name}/token`
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  return ((await (await client.request({ method: 'POST', path, body })).json()) as { status: { token: string } }).status.token
}

test('stores and join service serve their metrics to users with the permission for /metrics only', async () => {
  await using api = await startTestServer()
  const { client } = api
  await installOarlock(client)
  const allowed = await tokenOf(client, 'prometheus')
  const other = await tokenOf(client, 'other')
  await client.resource(bindings).create({
    metadata: { name: 'metrics' },
    roleRef: { apiGroup: rbac.group, kind: 'ClusterRole', name: 'oarlock:metrics-reader' },
    subjects: [{ kind: 'ServiceAccount', namespace: systemNamespace, name: 'prometheus' }],
  })
  const base = mkdtempSync(join(tmpdir(), 'oarlock-listener-'))
  const settings = (name: string) => ({
    ...{ client, dataDir: join(base, name), listen: { host: '127.0.0.1', port: 0 }, names: [], log: silentLog },
  })
  const stores = await startStoresProcess({ ...settings('stores'), onLost: () => {} })
  const joinService = await startJoinProcess({ ...settings('join'), api: { url: client.server, caCertificate: undefined } })
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
  const get = async (url: string, token: string | undefined, method = 'GET') => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const response = await fetch(`${url}/metrics`, { method, headers, dispatcher })
    return { status: response.status, text: await response.text() }
  }
  for (const { url } of [stores, joinService]) {
    const { status, text } = await get(url, allowed)
    equal(status, 200)
    match(text, /^process_cpu_seconds_total /m)
    equal(text.includes('oarlock_worker_processes'), false)
    equal((await get(url, undefined)).status, 401)
    equal((await get(url, 'no-such-token')).status, 401)
    deepEqual(await get(url, other), {
      status: 403,
      text: `forbidden: User "system:serviceaccount:${systemNamespace}:other" cannot get path "/metrics"\n`,
    })
    equal((await get(url, allowed, 'POST')).status, 405)
  }
  match((await get(stores.url, allowed)).text, /^oarlock_state_locks_broken_total 0$/m)
  await dispatcher.close()
  await joinService.stop()
  await stores.stop()
  rmSync(base, { recursive: true, force: true })
})
