/** The credential of a worker that `oarlock up` starts, in the hands of an engine that read it from the environment of its worker. */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { after, before, describe, test } from 'node:test'
import {
  type Run,
  runResource,
  type StackSpec,
  systemNamespace,
  workerPoolResource,
  workerResource,
  workersNamespace,
} from '../src/api/index.ts'
import { renewCredential } from '../src/app/join/bootstrap.ts'
import { type Client, createClient, leaseResource, namespaceResource, secretResource } from '../src/kubernetes/client/index.ts'
import { isReason } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runOarlock } from './support/run-program.ts'
import { StackFixture } from './support/stacks.ts'

const skip = process.platform !== 'linux' && 'needs /proc'

describe('the credential of a local worker', { skip }, () => {
  let oarlock: OarlockProcess
  let admin: Client
  const dataDir = makeDataDir()
  const clients: Client[] = []
  let revoked: string | undefined

  before(async () => {
    oarlock = await startOarlock(dataDir)
    admin = oarlock.client
    await admin.resource(namespaceResource).create({ metadata: { name: 'shop' } })
    await admin.resource(workerPoolResource).patch('default', { spec: { lifecycle: 'Warm', min: 2, max: 3 } }, { type: 'merge' })
    await admin.resource(secretResource).create({ metadata: { name: 'foreign', namespace: 'shop' }, stringData: { password: 'x' } })
  })
  after(async () => {
    await Promise.all(clients.map(client => client.close()))
    await oarlock?.stop()
    removeDirectory(dataDir)
  })

  const readyWorker = (other?: string) =>
    eventually(async () => {
      const { items } = await admin.resource(workerResource).listAll()
      return items.find(({ metadata, status }) => metadata.name !== other && status?.phase === 'Ready' && status.pid !== undefined)
    }, 'a worker to be ready')

  /** What `cat /proc/PID/environ` shows to every program of the same user. */
  async function stealCredential(pid: number): Promise<{ token: string; client: Client }> {
    const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
    const token = variables.find(each => each.startsWith('OARLOCK_TOKEN='))!.slice('OARLOCK_TOKEN='.length)
    const client = await createClient({ cluster: { server: admin.server, token, insecureSkipTlsVerify: true } })
    clients.push(client)
    return { token, client }
  }

  /** Resolves when the server has accepted the watch. */
  async function openWatch(path: string, token: string): Promise<{ ended: Promise<unknown> }> {
    const sent = get(new URL(path, admin.server), {
      headers: { authorization: `Bearer ${token}` },
      agent: false,
      rejectUnauthorized: false,
    })
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    equal(response.statusCode, 200)
    return { ended: once(response.resume(), 'end') }
  }

  const forbidden = async (what: string, attempt: Promise<unknown>, reason: 'Forbidden' | 'Unauthorized' = 'Forbidden') =>
    await rejects(attempt, error => {
      ok(isReason(error, reason), `${what}: ${(error as Error).message}`)
      return true
    })

  /** A Run that is assigned to the worker, and does not start before the test has ended. */
  async function assignRun(stack: string, workerName: string): Promise<Run> {
    const spec: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] }, suspend: true }
    const { metadata } = await new StackFixture(admin, 'shop').create(stack, spec)
    return await admin.resource(runResource).create({
      metadata: { name: `${stack}-1`, namespace: 'shop' },
      spec: {
        ...{ type: 'Apply', epoch: 1, revision: 'r', inputsDigest: 'i', reason: 'NewGeneration', pool: 'default', priority: 0, workerName },
        stackRef: { name: stack, uid: metadata.uid, generation: 1 },
        stack: spec,
      },
    })
  }

  test('is valid for an hour at most, and grants nothing of other workers, nor Secrets that no Run references', async () => {
    const worker = await readyWorker()
    const { name } = worker.metadata
    const { token, client } = await stealCredential(worker.status!.pid!)
    const { iat, exp } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { iat: number; exp: number }
    ok(exp - iat <= 3_601, `it is valid for ${exp - iat} s`)

    // Of the same pool.
    const foreign = await assignRun('foreign', 'another-worker')
    const runs = client.resource(runResource)
    const inShop = { namespace: 'shop' }
    await forbidden('the status of another Run', runs.patchStatus(foreign.metadata.name, { status: { phase: 'Succeeded' } }, inShop))
    await forbidden('another Run', runs.get(foreign.metadata.name, inShop))
    await forbidden('all Runs', runs.listAll())
    const spec = { pool: 'default', slots: 1, lifecycle: 'Warm' } as const
    await forbidden('a Worker of another name', client.resource(workerResource).create({ metadata: { name: 'another-worker' }, spec }))
    const lease = { metadata: { name: 'another-worker', namespace: systemNamespace }, spec: {} }
    await forbidden('a Lease of another name', client.resource(leaseResource).create(lease))
    await forbidden('another pool', client.resource(workerResource).patch(name, { spec: { pool: 'edge' } }, { type: 'merge' }))
    await forbidden('other labels', client.resource(workerResource).patch(name, { metadata: { labels: { gpu: 'a' } } }, { type: 'merge' }))
    const secrets = client.resource(secretResource)
    await forbidden('a Secret', secrets.get('foreign', inShop))
    await forbidden('all credentials', secrets.listAll({ namespace: workersNamespace }))
    const annotations = { 'kubernetes.io/service-account.name': 'default' }
    const minted = { metadata: { name: 'minted', namespace: 'shop', annotations }, type: 'kubernetes.io/service-account-token' }
    await forbidden('the token of a ServiceAccount', secrets.create(minted))
    await client.resource(workerPoolResource).get('default')
  })

  test('is renewed over the Unix socket, and "oarlock worker revoke" ends it and its watches', async () => {
    const worker = await readyWorker()
    const { name } = worker.metadata
    const { token, client } = await stealCredential(worker.status!.pid!)
    const renewed = await renewCredential(`unix://${dataDir}/api.sock`, undefined, token)
    deepEqual([renewed.worker, renewed.pool], [name, 'default'])

    const path = `/apis/oarlock.dev/v1alpha1/runs?watch=true&fieldSelector=${encodeURIComponent(`spec.workerName=${name}`)}`
    const watch = await openWatch(path, token)
    const { code, stdout, stderr } = await runOarlock(['worker', 'revoke', name, '-o', 'json', '--kubeconfig', oarlock.kubeconfig])
    equal(code, 0, stderr)
    deepEqual(JSON.parse(stdout), [{ worker: name, revoked: true }])
    await forbidden('anything', client.resource(workerPoolResource).get('default'), 'Unauthorized')
    await rejects(renewCredential(`unix://${dataDir}/api.sock`, undefined, renewed.credential), /returned 401/)
    // It would last for minutes; within 0.5 s is tested in watch-rights.slow.test.ts.
    await watch.ended

    const again = await runOarlock(['worker', 'revoke', name, '--kubeconfig', oarlock.kubeconfig])
    equal(again.code, 3)
    match(again.stderr, new RegExp(`worker/${name} has no credential`))
    revoked = name
  })

  test('ends with its Worker: it registers no other one, and the record is deleted', async () => {
    // The revoked one is lost 10 s later.
    const worker = await readyWorker(revoked)
    const { name } = worker.metadata
    const { client } = await stealCredential(worker.status!.pid!)
    equal((await runOarlock(['drain', name, '--kubeconfig', oarlock.kubeconfig])).code, 0)
    await eventually(async () => {
      const found = await admin.resource(secretResource).getOrUndefined(`worker-credential-${name}`, { namespace: workersNamespace })
      return found === undefined
    }, 'the record of its credential to be deleted')
    const spec = { pool: 'default', slots: 1, lifecycle: 'Warm' } as const
    await forbidden('its own name', client.resource(workerResource).create({ metadata: { name }, spec }), 'Unauthorized')
  })
})
