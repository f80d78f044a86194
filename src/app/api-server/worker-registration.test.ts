import { equal, ok, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { eventually } from '../../../test/support/eventually.ts'
import {
  labels,
  systemNamespace,
  type Worker,
  workerBucketOf,
  workerPoolResource,
  workerResource,
  workersNamespace,
} from '../../api/index.ts'
import { type Client, createClient, leaseResource, secretResource } from '../../kubernetes/client/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { installOarlock } from '../controllers/install.ts'
import { JoinService, serverTokenIssuer, workerCredentialName } from '../join/index.ts'
import { poolGroup, workersGroup, workerUserName } from '../worker-identity.ts'
import { type ApiServerRole, startApiServer } from './api-server.ts'

/** No process ends the credentials of deleted Workers here: the server alone decides. */
const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-register-'))
let api: ApiServerRole
let admin: Client
const clients: Client[] = []

async function start(): Promise<void> {
  api = await startApiServer({ dataDir, listen: { host: '127.0.0.1', port: 0 } })
  admin = await api.connect({ name: 'admin', groups: ['system:masters'] }, 'test')
}

async function stop(): Promise<void> {
  await Promise.all([admin, ...clients.splice(0)].map(client => client?.close()))
  await api?.server.close({ graceMs: 200 })
}

before(async () => {
  await start()
  await installOarlock(admin)
  await admin.resource(workerPoolResource).create({ metadata: { name: 'edge' }, spec: { mode: 'External' } })
})
after(async () => {
  await stop()
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
})

async function connect(token: string): Promise<Client> {
  const { url, caCertificate } = api.server
  const client = await createClient({ cluster: { server: url, caCertificate, token } })
  clients.push(client)
  return client
}

/** A client with a new credential of the worker. */
async function issue(worker: string): Promise<Client> {
  const issued = await new JoinService({ client: admin, issueCredential: serverTokenIssuer(api.server) }).issue(worker, 'edge', {})
  ok('credential' in issued)
  return await connect(issued.credential)
}

const create = async (client: Client, name: string): Promise<Worker> =>
  await client.resource(workerResource).create({ metadata: { name }, spec: { pool: 'edge', slots: 1, lifecycle: 'Warm' } })

const refused = async (name: string, attempt: Promise<unknown>) =>
  await rejects(attempt, error => {
    ok(isReason(error, 'Forbidden'), (error as Error).message)
    ok((error as Error).message.includes(`worker ${name} has registered before, and its Worker was deleted`), (error as Error).message)
    return true
  })

const drain = async (name: string) => {
  const patch = { metadata: { labels: { rack: '7' } }, spec: { drain: true } }
  await admin.resource(workerResource).patch(name, patch, { type: 'merge' })
}

test('a worker that deletes its Worker does not register it again without the drain, before and after a restart of the server', async () => {
  const issued = await new JoinService({ client: admin, issueCredential: serverTokenIssuer(api.server) }).issue('w1', 'edge', {})
  ok('credential' in issued)
  const worker = await connect(issued.credential)
  await create(worker, 'w1')
  await drain('w1')
  // A retry, after its response was lost.
  await rejects(create(worker, 'w1'), { reason: 'AlreadyExists' })
  const { spec, metadata } = await admin.resource(workerResource).get('w1')
  equal(spec.drain, true)
  equal(metadata.labels?.rack, '7')

  await worker.resource(workerResource).delete('w1')
  await refused('w1', create(worker, 'w1'))
  await refused(
    'w1',
    worker.resource(workerResource).apply({ metadata: { name: 'w1' }, spec: { pool: 'edge', slots: 1, lifecycle: 'Warm' } }),
  )
  await stop()
  await start()
  await refused('w1', create(await connect(issued.credential), 'w1'))
  equal(await admin.resource(workerResource).getOrUndefined('w1'), undefined)
})

test('requests that are sent together register one Worker', async () => {
  await issue('w2')
  // In this process: each is decided before the previous one is on disk.
  const worker = await api.connect({ name: workerUserName('w2'), groups: [workersGroup, poolGroup('edge')] }, 'test')
  clients.push(worker)
  const deadline = AbortSignal.timeout(30_000)
  const isDecided = async (exists: boolean) => {
    while ((api.server.newestObject('workers.oarlock.dev', undefined, 'w2') !== undefined) !== exists) {
      deadline.throwIfAborted()
      await immediate()
    }
  }
  const first = create(worker, 'w2')
  await isDecided(true)
  const deletion = worker.resource(workerResource).delete('w2')
  await isDecided(false)
  await refused('w2', create(worker, 'w2'))
  await Promise.all([first, deletion])
})

test('a worker whose Worker the garbage collector deletes, for an owner that it has set, does not register again', async () => {
  const worker = await issue('w3')
  await create(worker, 'w3')
  await drain('w3')
  const owner = { apiVersion: 'oarlock.dev/v1alpha1', kind: 'WorkerPool', name: 'none', uid: 'a4a2d1f6-8e2c-4b43-9d41-000000000000' }
  await worker.resource(workerResource).patch('w3', { metadata: { ownerReferences: [owner] } }, { type: 'merge' })
  await eventually(async () => (await admin.resource(workerResource).getOrUndefined('w3')) === undefined, 'the Worker to be deleted')
  await refused('w3', create(worker, 'w3'))
})

test('a worker that a controller requested creates no Worker of its own', async () => {
  const spec = { pool: 'edge', slots: 1, lifecycle: 'Warm', start: true } as const
  await admin.resource(workerResource).create({ metadata: { name: 'w4' }, spec })
  const worker = await issue('w4')
  await drain('w4')
  await worker.resource(workerResource).delete('w4')
  await refused('w4', create(worker, 'w4'))
})

test('a new credential registers again; a dry run and a Worker of another process do not use it up', async () => {
  const first = await issue('w5')
  await create(first, 'w5')
  await admin.resource(secretResource).delete(workerCredentialName('w5'), { namespace: workersNamespace })
  const second = await issue('w5')
  await rejects(create(second, 'w5'), { reason: 'AlreadyExists' })
  await admin.resource(workerResource).delete('w5')
  const body = {
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Worker',
    metadata: { name: 'w5' },
    spec: { pool: 'edge', slots: 1, lifecycle: 'Warm' },
  }
  await second.request({ method: 'POST', path: '/apis/oarlock.dev/v1alpha1/workers?dryRun=All', body })
  await create(second, 'w5')
})

test('the server sets the bucket of a Worker and its Lease, whatever the worker writes', async () => {
  const worker = await issue('w6')
  const bucket = workerBucketOf('w6')
  const bucketIn = ({ metadata }: { metadata: { labels?: Readonly<Record<string, string>> | undefined } }) =>
    metadata.labels?.[labels.workerBucket]
  equal(bucketIn(await create(worker, 'w6')), bucket)
  const other = { metadata: { labels: { [labels.workerBucket]: bucket === '1' ? '2' : '1' } } }
  equal(bucketIn(await worker.resource(workerResource).patch('w6', other, { type: 'merge' })), bucket)
  const leases = worker.resource(leaseResource)
  const metadata = { name: 'w6', namespace: systemNamespace, labels: { [labels.pool]: 'edge' } }
  equal(bucketIn(await leases.create({ metadata, spec: { holderIdentity: 'w6' } })), bucket)
  const removed = { metadata: { labels: { [labels.workerBucket]: null } } } as object
  equal(bucketIn(await leases.patch('w6', removed, { type: 'merge', namespace: systemNamespace })), bucket)
  const election = { name: 'oarlock-controller', namespace: systemNamespace }
  equal(bucketIn(await admin.resource(leaseResource).create({ metadata: election, spec: {} })), undefined)
})
