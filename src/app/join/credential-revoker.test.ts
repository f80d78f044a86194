import { deepEqual, equal, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import {
  type Run,
  runResource,
  type StackSpec,
  stackResource,
  workerPoolResource,
  workerResource,
  workersNamespace,
} from '../../api/index.ts'
import { type Client, namespaceResource, secretResource } from '../../kubernetes/client/index.ts'
import { Manager, silentLog } from '../../kubernetes/controller/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { type ApiServerRole, startApiServer } from '../api-server/api-server.ts'
import { installOarlock } from '../controllers/install.ts'
import { workersGroup, workerUserName } from '../worker-identity.ts'
import { CredentialRevoker } from './credential-revoker.ts'
import { endedAtAnnotation, registerWithinMs, workerCredentialName } from './join-secrets.ts'
import { JoinService } from './join-service.ts'
import { serverTokenIssuer } from './server-token-issuer.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-end-'))
let api: ApiServerRole
let client: Client
let manager: Manager
let joinService: JoinService
let revoker: CredentialRevoker
let nowMs = Date.now()
const ended: string[] = []

before(async () => {
  api = await startApiServer({ dataDir, listen: { host: '127.0.0.1', port: 0 } })
  client = await api.connect({ name: 'admin', groups: ['system:masters'] }, 'test')
  await installOarlock(client)
  await client.resource(namespaceResource).create({ metadata: { name: 'shop' } })
  await client.resource(workerPoolResource).create({ metadata: { name: 'edge' }, spec: { mode: 'External' } })
  manager = new Manager({ client, log: silentLog })
  const workers = manager.informer(workerResource)
  joinService = new JoinService({ client, issueCredential: serverTokenIssuer(api.server) })
  const onEnded = async (worker: string) => void ended.push(worker)
  revoker = new CredentialRevoker({ client, workers, log: silentLog, onEnded, nowMs: () => nowMs })
  await manager.start()
})
after(async () => {
  revoker?.stop()
  await manager?.stop()
  await client?.close()
  await api?.server.close({ graceMs: 200 })
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
})

const recordOf = (worker: string) =>
  client.resource(secretResource).getOrUndefined(workerCredentialName(worker), { namespace: workersNamespace })

/** As its process does. */
async function register(worker: string): Promise<void> {
  const issued = await joinService.issue(worker, 'edge', {})
  ok('credential' in issued)
  const spec = { pool: 'edge', slots: 1, lifecycle: 'Warm' } as const
  await client.resource(workerResource).create({ metadata: { name: worker }, spec })
}

async function assignRun(stack: string, workerName: string): Promise<Run> {
  const spec: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] }, suspend: true }
  const { uid } = (await client.resource(stackResource).create({ metadata: { name: stack, namespace: 'shop' }, spec })).metadata
  return await client.resource(runResource).create({
    metadata: { name: `${stack}-1`, namespace: 'shop' },
    spec: {
      ...{ type: 'Apply', epoch: 1, revision: 'r', inputsDigest: 'i', reason: 'NewGeneration', pool: 'edge', priority: 0, workerName },
      stackRef: { name: stack, uid, generation: 1 },
      stack: spec,
    },
  })
}

const endRun = async ({ metadata: { name } }: Run, phase: 'Succeeded' | 'Lost') =>
  await client.resource(runResource).patchStatus(name, { status: { phase, finishedAt: rfc3339(Date.now()) } }, { namespace: 'shop' })

const renewal = async (worker: string) => {
  const outcome = await joinService.renew({ name: workerUserName(worker), groups: [workersGroup] })
  return 'code' in outcome ? outcome.code : 200
}

test('the credential of a worker without Runs to finish is deleted with its Worker', async () => {
  await register('w1')
  await endRun(await assignRun('done', 'w1'), 'Succeeded')
  await client.resource(workerResource).delete('w1')
  await eventually(async () => (await recordOf('w1')) === undefined, 'the record to be deleted')
  equal(await renewal('w1'), 401)
  // A new worker of this name has a credential of its own.
  await register('w1')
  await client.resource(workerResource).delete('w1')
})

test('a worker whose Worker was deleted keeps its credential until its Runs have ended, without renewal', async () => {
  await register('w2')
  const run = await assignRun('busy', 'w2')
  await client.resource(workerResource).delete('w2')
  await eventually(async () => (await recordOf('w2'))?.metadata.annotations?.[endedAtAnnotation], 'the record to be marked')
  equal(await renewal('w2'), 403)
  await eventually(() => ended.includes('w2'), 'its rights to be withdrawn')
  await revoker.sweep()
  ok(await recordOf('w2'))
  await endRun(run, 'Succeeded')
  await revoker.sweep()
  equal(await recordOf('w2'), undefined)
})

test('the credential of a lost worker remains as long as the store accepts a last version', async () => {
  await register('w3')
  await endRun(await assignRun('lost', 'w3'), 'Lost')
  await client.resource(workerResource).delete('w3')
  await eventually(async () => (await recordOf('w3'))?.metadata.annotations?.[endedAtAnnotation], 'the record to be marked')
  nowMs += 9 * 60_000
  await revoker.sweep()
  ok(await recordOf('w3'))
  nowMs += 2 * 60_000
  await revoker.sweep()
  equal(await recordOf('w3'), undefined)
})

test('a lost Run that ends in the future, by a clock that is wrong, keeps no credential', async () => {
  nowMs = Date.now()
  await register('w-future')
  await endRun(await assignRun('future', 'w-future'), 'Lost')
  nowMs -= 11 * 60_000
  await client.resource(workerResource).delete('w-future')
  await eventually(async () => (await recordOf('w-future')) === undefined, 'the record to be deleted')
})

test('a worker that has not registered in time cannot register later, and its credential is deleted', async () => {
  nowMs = Date.now()
  const issued = await joinService.issue('w4', 'edge', {})
  ok('credential' in issued)
  await revoker.sweep()
  ok(await recordOf('w4'))
  nowMs += registerWithinMs
  await revoker.sweep()
  equal(await recordOf('w4'), undefined)
})

test('two workers of one name do not have a credential at the same time', async () => {
  await register('w5')
  deepEqual(await joinService.issue('w5', 'edge', {}), { code: 409, message: 'worker w5 already has a credential' })
})
