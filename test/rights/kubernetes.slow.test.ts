import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  labels,
  maxInlineBytes,
  runResource,
  stackResource,
  workerPoolResource,
  workerResource,
  workersNamespace,
} from '../../src/api/index.ts'
import { CredentialRevoker } from '../../src/app/join/credential-revoker.ts'
import { JoinService, revokeWorker, serviceAccountIssuer } from '../../src/app/join/index.ts'
import { withdrawRegistration, withdrawRights } from '../../src/app/join/service-account-issuer.ts'
import { type Client, createClient, namespaceResource } from '../../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../../src/kubernetes/controller/index.ts'
import { isReason } from '../../src/kubernetes/object/index.ts'
import { type Peer, peerMissing, startPeer } from '../conformance/peer.ts'
import { eventually } from '../support/eventually.ts'
import { skipWithout } from '../support/run-program.ts'
import { ScriptedWorkers } from '../support/scripted-workers.ts'
import { StackFixture } from '../support/stacks.ts'
import { startControllers } from '../support/start-controllers.ts'
import { checkExecution } from './check-execution.ts'
import {
  checkFencedInputs,
  checkReferencedInputs,
  checkReservedNamespaces,
  checkTakenOutputs,
  checkUnboundNamespace,
} from './check-inputs.ts'
import { checkRows } from './check-rows.ts'
import { awaitingPlan, createFixture, type Fixture, namespace, runSpec, stackSpec } from './fixture.ts'
import { podWorkerRows } from './pod-worker-rows.ts'
import { approvalBy, objectRows, storeRows } from './rows.ts'

const skip = peerMissing()

let peer: Peer
let fixture: Fixture
before(async () => {
  if (skip) return
  peer = await startPeer()
  fixture = await createFixture(peer)
  // The server compiles policies some time after they were written.
  const probe = objectRows.find(({ user, path, may }) => user === 'run-writer' && !may && path.includes('runs/web-2'))!
  await eventually(async () => (await fixture.send('api', probe.user, probe)).code === 403, 'the policies to be in effect')
})
after(async () => {
  await fixture?.close()
  await peer?.close()
})

test('kube-apiserver: users, components and workers may do to objects what their rights say', { skip }, async () => {
  await checkRows(fixture, objectRows, 'kubernetes')
})

test('kube-apiserver: a worker Pod may do to objects and states what its Worker and its Runs allow, and no other Pod may', {
  skip,
}, async () => {
  await checkRows(fixture, podWorkerRows(fixture.podUids), 'kubernetes')
})

test('kube-apiserver: stores decide by TokenReview and SubjectAccessReview', { skip }, async () => {
  await checkRows(fixture, storeRows, 'kubernetes')
})

test('kube-apiserver: a Run gets exactly what it references, until it ends', { skip }, async () => await checkReferencedInputs(fixture))
test(
  'kube-apiserver: a worker executes Runs with a Secret, a ConfigMap, git credentials and outputs, and reads no object itself',
  { skip: skip || skipWithout('openssl') },
  async () => await checkExecution(fixture),
)
test('kube-apiserver: a Run that a newer one has fenced off gets no inputs', { skip }, async () => await checkFencedInputs(fixture))
test('kube-apiserver: outputs replace no Secret of a user', { skip }, async () => await checkTakenOutputs(fixture))
test('kube-apiserver: no Secrets of Oarlock itself are handed out', { skip }, async () => await checkReservedNamespaces(fixture))
test(
  'kube-apiserver: a namespace that is not bound is named with the command that binds it',
  { skip },
  async () => await checkUnboundNamespace(fixture),
)

test('kube-apiserver: the cost limit of policies allows a user to cancel a Run with the largest source', { skip }, async () => {
  const files = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`f${i}`, 'x'.repeat(maxInlineBytes / 64 - 100)]))
  const stack = { ...stackSpec, source: { inline: { files } } }
  const spec = { ...runSpec('web', 'u', {}), stack }
  await fixture.client.resource(runResource).create({ metadata: { name: 'large', namespace }, spec })
  const path = `/apis/oarlock.dev/v1alpha1/namespaces/${namespace}/runs/large?dryRun=All`
  const request = { method: 'PATCH', path, contentType: 'application/merge-patch+json' }
  deepEqual(await fixture.send('api', 'editor', { ...request, body: { spec: { cancel: true } } }).then(({ code }) => code), 200)
  const changed = { spec: { cancelReason: 'Outdated' } }
  const { code, message } = await fixture.send('api', 'editor', { ...request, body: changed })
  equal(code, 403)
  match(message, /only cancel, priority, priorityClass of spec can be changed/)
})

test('kube-apiserver: the cost limit of policies allows a user to approve a plan of the largest Stack', { skip }, async () => {
  const files = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`f${i}`, 'x'.repeat(maxInlineBytes / 64 - 100)]))
  const spec = { ...stackSpec, source: { inline: { files } } }
  await fixture.client.resource(stackResource).create({ metadata: { name: 'large', namespace }, spec })
  await fixture.client.resource(stackResource).patchStatus('large', { status: { plan: awaitingPlan } }, { namespace })
  const path = `/apis/oarlock.dev/v1alpha1/namespaces/${namespace}/stacks/large?dryRun=All`
  const approve = { method: 'PATCH', path, contentType: 'application/merge-patch+json', body: approvalBy('approver') }
  deepEqual(await fixture.send('api', 'approver', approve), { code: 200, message: '' })
  const denied = await fixture.send('api', 'editor', { ...approve, body: approvalBy('editor') })
  equal(denied.code, 403)
  match(
    denied.message,
    /approving a plan needs the permission to update stacks\/approval, granted by the ClusterRoles oarlock:approver and admin$/,
  )
  const other = await fixture.send('api', 'approver', { ...approve, body: approvalBy('approver', 'sha256:4567') })
  equal(other.code, 403)
  match(other.message, /no plan with this digest awaits approval: "oarlock approve" shows the plan that does, and approves it$/)
})

test('kube-apiserver: where another user must approve, an approval is rejected with the reason', { skip }, async () => {
  const { client } = fixture
  const body = { metadata: { labels: { 'oarlock.dev/approval': 'FourEyes' } } }
  await client.resource(namespaceResource).patch('elsewhere', body as never, { type: 'merge' })
  await client.resource(stackResource).create({ metadata: { name: 'vault', namespace: 'elsewhere' }, spec: stackSpec })
  const path = '/apis/oarlock.dev/v1alpha1/namespaces/elsewhere/stacks/vault?dryRun=All'
  const annotated = {
    metadata: { annotations: { 'oarlock.dev/approved-plan': 'sha256:1', 'oarlock.dev/approved-by': await userNameOf(client) } },
  }
  const approve = { method: 'PATCH', path, contentType: 'application/merge-patch+json', body: annotated }
  // The policy sees the new label of the namespace some time later.
  const reason = /this API server cannot record who changed a Stack: only the embedded server can$/
  await eventually(async () => reason.test((await fixture.send('api', 'admin', approve)).message), 'the approval to be rejected')
})

async function userNameOf(client: Client): Promise<string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const response = await client.request({ method: 'POST', path: '/apis/authentication.k8s.io/v1/selfsubjectreviews', body })
  return ((await response.json()) as { status: { userInfo: { username: string } } }).status.userInfo.username
}

test('kube-apiserver: the credential of a worker that joined is bound to its record, and revoking it revokes the token', {
  skip,
}, async () => {
  const { client } = fixture
  const joinService = new JoinService({ client, issueCredential: serviceAccountIssuer(client) })
  const issued = await joinService.issue('w9', 'edge', {})
  if ('code' in issued) throw new Error(issued.message)
  ok(issued.ttlMs <= 3_600_000, `it is valid for ${issued.ttlMs} ms`)
  const worker = await createClient({ cluster: { server: peer.url, token: issued.credential, insecureSkipTlsVerify: true } })
  const { apiVersion, kind, plural } = workerResource
  const spec = { pool: 'edge', slots: 1, lifecycle: 'Warm' }
  const body = { apiVersion, kind, metadata: { name: 'w9', labels: { [labels.pool]: 'edge' } }, spec }
  const register = async () => await worker.request({ method: 'POST', path: `/apis/${apiVersion}/${plural}?dryRun=All`, body })
  // The roles of a new account take effect some time after they were written.
  await eventually(
    async () =>
      await register().then(
        () => true,
        () => false,
      ),
    'the worker to be allowed to register',
  )
  await withdrawRights(client, 'w9')
  await eventually(
    async () =>
      await register().then(
        () => false,
        error => isReason(error, 'Forbidden'),
      ),
    'the worker to be denied a registration',
  )
  equal(await revokeWorker(client, 'w9'), true)
  await eventually(
    async () =>
      await register().then(
        () => false,
        error => isReason(error, 'Unauthorized'),
      ),
    'the cache of tokens to expire',
    30_000,
  )
  equal(await revokeWorker(client, 'w9'), false)
  await worker.close()
})

test('kube-apiserver: a worker creates its Worker once, and cannot lose a drain by deleting it, nor by a renewal of its credential', {
  skip,
}, async () => {
  const { client } = fixture
  const manager = new Manager({ client, log: silentLog })
  const joinService = new JoinService({ client, issueCredential: serviceAccountIssuer(client) })
  const revoker = new CredentialRevoker({
    ...{ client, log: silentLog, workers: manager.informer(workerResource) },
    onRegistered: (name, record) => withdrawRegistration(client, name, record),
    onEnded: name => withdrawRights(client, name),
  })
  await manager.start()
  const issued = await joinService.issue('w10', 'edge', { gpu: 'a100' })
  if ('code' in issued) throw new Error(issued.message)
  const worker = await createClient({ cluster: { server: peer.url, token: issued.credential, insecureSkipTlsVerify: true } })
  const workers = worker.resource(workerResource)
  const register = async () =>
    await workers.create({
      metadata: { name: 'w10', labels: { [labels.pool]: 'edge', gpu: 'a100' } },
      spec: { pool: 'edge', slots: 1, lifecycle: 'Warm' },
    })
  const rejection = async () =>
    await register().then(
      () => undefined,
      error => (isReason(error, 'Forbidden') ? (error as Error).message : undefined),
    )
  try {
    // The roles of a new account take effect some time after they were written.
    await eventually(async () => {
      await register().catch(() => {})
      return (await client.resource(workerResource).getOrUndefined('w10')) !== undefined
    }, 'the worker to register')
    const once = /a worker can register once: start a new worker, or join again/
    await eventually(async () => once.test((await rejection()) ?? ''), 'the right to register to be withdrawn')
    // It keeps its labels, and a renewal does not grant the right again.
    const renewed = await joinService.renew({
      name: `system:serviceaccount:${workersNamespace}:w10`,
      groups: [`system:serviceaccounts:${workersNamespace}`],
    })
    if ('code' in renewed) throw new Error(renewed.message)
    await client.resource(workerResource).patch('w10', { spec: { drain: true } }, { type: 'merge' })
    await workers.patch('w10', { metadata: { annotations: { a: 'b' } } }, { type: 'merge' })
    await workers.delete('w10')
    match((await rejection()) ?? 'the worker has registered again', once)
    equal(await client.resource(workerResource).getOrUndefined('w10'), undefined)
  } finally {
    revoker.stop()
    await manager.stop()
    await worker.close()
  }
})

// Last: the controllers change the objects of the rows.
test('kube-apiserver: controllers and a worker bring a Stack to Ready with the permissions of their roles', { skip }, async () => {
  const forbidden: string[] = []
  const clientOf = async (user: string) => {
    const client = await createClient({ cluster: { server: peer.url, token: fixture.tokens[user], insecureSkipTlsVerify: true } })
    client.observeRequests(({ method, code }) => {
      if (code === '401' || code === '403') forbidden.push(`${user} ${method}`)
    })
    return client
  }
  const [controllerClient, workerClient] = [await clientOf('controller'), await clientOf('w5')]
  const manager = await startControllers(controllerClient, 'controller')
  const worker = new ScriptedWorkers(workerClient, 1_000)
  // The Run of the rows that has no worker would get the only one.
  await fixture.client.resource(runResource).delete('web-2', { namespace })
  try {
    await worker.start(await fixture.client.resource(workerPoolResource).get('edge'), 'w5')
    const stacks = new StackFixture(fixture.client, namespace)
    await stacks.create('app', { ...stackSpec, pool: 'edge', suspend: false, deletion: 'Orphan' })
    await stacks.untilReady('app')
    equal(worker.accepted.length, 1)
    await fixture.client.resource(stackResource).delete('app', { namespace })
    await stacks.untilDeleted('app')
  } finally {
    worker.stop('w5')
    await manager.stop()
    await Promise.all([controllerClient.close(), workerClient.close()])
  }
  deepEqual(forbidden, [])
})
