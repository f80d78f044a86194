/**
 * A process with the endpoints that the fuzz tests attack. `stores`: state and log stores and the join service, both on the address of the API
 * server and on listeners of their own, without controllers, so that Runs stay as they were created. `up`: all roles, as in `oarlock up`.
 * Messages: `endpoints` when it is ready; `memory` after a garbage collection, on request.
 */
import { join } from 'node:path'
import {
  labels,
  type RunSpec,
  runResource,
  stackResource,
  systemNamespace,
  workerPoolResource,
  workerResource,
} from '../../src/api/index.ts'
import { startAllInOne } from '../../src/app/all-in-one.ts'
import { startApiServer } from '../../src/app/api-server/api-server.ts'
import { installOarlock } from '../../src/app/controllers/install.ts'
import { makeRegistry } from '../../src/app/endpoints/metrics.ts'
import { createJoinHandler, createJoinToken, JoinService, serverTokenIssuer } from '../../src/app/join/index.ts'
import { startJoinProcess } from '../../src/app/join/join-process.ts'
import { openStores, serveStores } from '../../src/app/stores/stores.ts'
import { startStoresProcess } from '../../src/app/stores/stores-process.ts'
import { poolGroup, workersGroup, workerUserName } from '../../src/app/worker-identity.ts'
import { type Client, leaseResource, namespaceResource } from '../../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../../src/kubernetes/controller/index.ts'
import type { ApiServer } from '../../src/kubernetes/server/index.ts'

/** Names of credentials, which generated requests contain instead of their values. */
export type Credentials = Readonly<Record<string, string>>

export type Endpoints = {
  kind: 'endpoints'
  kubeconfig: string
  /** Where requests are sent: `https://…`, `http://…` or the path of a Unix socket. */
  addresses: Readonly<Record<string, string>>
  credentials: Credentials
  joinTokens: Credentials
  /** The UID of the Stack that the requests may change. */
  stackUid: string
}

export type MemoryReport = { kind: 'memory'; heapBytes: number; rssBytes: number }

const [mode = 'stores', dataDir = ''] = process.argv.slice(2)
const local = { host: '127.0.0.1', port: 0 }
const log = { ...silentLog, error: (...args: unknown[]) => console.error(...args) }

process.on('message', () => {
  globalThis.gc?.()
  const { heapUsed, rss } = process.memoryUsage()
  process.send?.({ kind: 'memory', heapBytes: heapUsed, rssBytes: rss } satisfies MemoryReport)
})
process.send?.(mode === 'up' ? await startUp() : await startStoresAndJoinService())

async function startStoresAndJoinService(): Promise<Endpoints> {
  const { server, mounts, connect } = await startApiServer({
    dataDir: join(dataDir, 'api'),
    listen: local,
    mounts: ['/state/', '/logs/', '/join'],
    log,
  })
  const client = await connect({ name: 'oarlock:controllers', groups: ['system:masters'] }, 'fuzz')
  await installOarlock(client)
  const { stackUid, victimUid } = await createObjects(client)
  const stores = await openStores({ dataDir: join(dataDir, 'up'), log })
  const registry = makeRegistry()
  const manager = new Manager({ client, log, registry })
  const served = serveStores(stores, { client, manager, registry, log })
  mounts.set('/state/', served.state)
  mounts.set('/logs/', served.log)
  const joinService = new JoinService({ client, issueCredential: serverTokenIssuer(server) })
  mounts.set('/join', createJoinHandler({ joinService, caCertificate: server.caCertificate }))
  await manager.start()
  const role = { client, listen: local, names: [], log }
  const onLost = (error: Error) => {
    throw error
  }
  const storesProcess = await startStoresProcess({ ...role, dataDir: join(dataDir, 'stores'), onLost })
  const api = { url: server.url, caCertificate: server.caCertificate }
  const joinProcess = await startJoinProcess({ ...role, dataDir: join(dataDir, 'join'), api })
  return {
    kind: 'endpoints',
    kubeconfig: server.kubeconfigPath,
    addresses: { api: server.url, socket: join(dataDir, 'api', 'api.sock'), stores: storesProcess.url, join: joinProcess.url },
    credentials: {
      ...tokensOf(server),
      'stack-token': await stores.state.stackToken(stackUid),
      'victim-token': await stores.state.stackToken(victimUid),
      'join-credential': await joinOnce(joinService, await joinToken(client, server, {})),
    },
    joinTokens: {
      valid: await joinToken(client, server, { allowLabels: ['*'] }),
      used: await joinToken(client, server, { uses: 0 }),
      expired: await joinToken(client, server, { nowMs: 0 }),
    },
    stackUid,
  }
}

async function startUp(): Promise<Endpoints> {
  const { server, client, httpUrl } = await startAllInOne({
    dataDir,
    listen: local,
    healthAddress: local,
    launcher: [process.execPath, '-e', ''],
    pool: { max: 1 },
    version: 'fuzz',
    log: silentLog,
  })
  const { stackUid } = await createObjects(client)
  return {
    kind: 'endpoints',
    kubeconfig: server.kubeconfigPath,
    addresses: { api: server.url, socket: join(dataDir, 'api.sock'), plain: httpUrl },
    credentials: tokensOf(server),
    joinTokens: {},
    stackUid,
  }
}

/** Two Stacks with three Runs and two workers, in each case one that the requests may change and `victim`, which they may not: `app`, which the requests may change, and `victim` in another namespace, which they may not. */
async function createObjects(client: Client): Promise<{ stackUid: string; victimUid: string }> {
  for (const name of ['apps', 'other']) await client.resource(namespaceResource).create({ metadata: { name } })
  await client.resource(workerPoolResource).create({ metadata: { name: 'edge' }, spec: { mode: 'External', lifecycle: 'Warm' } })
  const spec = { engine: 'command', source: { inline: { files: { 'main.sh': 'true' } } }, pool: 'edge', suspend: true } as const
  const stacks = client.resource(stackResource)
  const [app, victim] = [
    await stacks.create({ metadata: { name: 'app', namespace: 'apps' }, spec: spec as never }),
    await stacks.create({ metadata: { name: 'victim', namespace: 'other' }, spec: spec as never }),
  ]
  if (mode !== 'up') {
    await createRun(client, 'apps', 'run-1', 'app', app.metadata.uid, 'active', 1)
    await createRun(client, 'apps', 'run-2', 'app', app.metadata.uid, 'ended', 2)
    await client
      .resource(runResource)
      .patchStatus(
        'run-2',
        { status: { phase: 'Succeeded', finishedAt: new Date().toISOString().replace(/\.\d+/, '') } },
        { namespace: 'apps' },
      )
    await createRun(client, 'other', 'run-1', 'victim', victim.metadata.uid, 'elsewhere', 1)
    // The finalizer keeps the Worker, without which its worker cannot create its Lease again.
    await createWorker(client, 'active', ['oarlock.dev/fuzz'])
    await createWorker(client, 'victim')
  }
  const rules = [
    { apiGroups: ['oarlock.dev'], resources: ['stacks/state', 'stacks/plan', 'stacks/log'], verbs: ['get', 'update', 'delete'] },
    { apiGroups: ['oarlock.dev'], resources: ['runs', 'stacks'], verbs: ['get', 'list'] },
  ]
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/apps'
  const subject = { kind: 'User', name: 'editor', apiGroup: 'rbac.authorization.k8s.io' }
  const post = async (path: string, body: object) =>
    await client.request({ method: 'POST', path, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(body)) })
  await post(`${rbac}/roles`, { metadata: { name: 'editor' }, rules })
  const roleRef = { kind: 'Role', name: 'editor', apiGroup: 'rbac.authorization.k8s.io' }
  await post(`${rbac}/rolebindings`, { metadata: { name: 'editor' }, roleRef, subjects: [subject] })
  return { stackUid: app.metadata.uid, victimUid: victim.metadata.uid }
}

async function createWorker(client: Client, name: string, finalizers: string[] = []) {
  const spec = { pool: 'edge', slots: 1, lifecycle: 'Warm' } as const
  await client.resource(workerResource).create({ metadata: { name, finalizers, labels: { [labels.pool]: 'edge' } }, spec })
  const lease = { holderIdentity: name, leaseDurationSeconds: 10, renewTime: '2026-01-01T00:00:00.000000Z' }
  await client.resource(leaseResource).create({ metadata: { name, namespace: systemNamespace }, spec: lease })
}

async function createRun(client: Client, namespace: string, name: string, stack: string, uid: string, workerName: string, epoch: number) {
  const spec = {
    ...{ type: 'Apply', reason: 'NewGeneration', stackRef: { name: stack, uid, generation: 1 }, epoch, workerName },
    stack: { engine: 'command', source: { inline: { files: { 'main.sh': 'true' } } } },
    ...{ revision: 'r', inputsDigest: 'i', pool: 'edge', priority: 0 },
  } as RunSpec
  await client.resource(runResource).create({ metadata: { name, namespace }, spec })
}

/** Bearer tokens: the administrator, a user with rights in `apps`, one without any, and workers of one Run each. */
function tokensOf(server: ApiServer): Credentials {
  const issue = (name: string, groups: string[] = [], ttlMs = 24 * 3_600_000) => server.issueToken({ name, groups, ttlMs })
  const worker = (name: string) => issue(workerUserName(name), [workersGroup, poolGroup('edge')])
  return {
    admin: server.adminToken,
    editor: issue('editor'),
    guest: issue('guest'),
    worker: worker('active'),
    'ended-worker': worker('ended'),
    'other-worker': worker('elsewhere'),
    expired: issue('editor', ['system:masters'], 1),
  }
}

async function joinToken(
  client: Client,
  server: ApiServer,
  options: { uses?: number; allowLabels?: string[]; nowMs?: number },
): Promise<string> {
  return (await createJoinToken(client, server.caCertificate, { pool: 'edge', ttlMs: 24 * 3_600_000, ...options })).text
}

async function joinOnce(service: JoinService, token: string): Promise<string> {
  const response = await service.join(token, 'joined')
  if (!('credential' in response)) throw new Error(response.message)
  return response.credential
}
