import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startApiServer } from '../../src/app/api-server/api-server.ts'
import { serverTokenIssuer } from '../../src/app/join/index.ts'
import type { Rule } from '../../src/app/manifests/rule.ts'
import { streamLog } from '../../src/cli/follow-log.ts'
import { StateApi } from '../../src/cli/state/state-api.ts'
import { createClient } from '../../src/kubernetes/client/index.ts'
import { createPool, type Target } from '../conformance/target.ts'
import { eventually } from '../support/eventually.ts'
import { skipWithout } from '../support/run-program.ts'
import { checkExecution } from './check-execution.ts'
import { checkFencedInputs, checkReferencedInputs, checkReservedNamespaces, checkTakenOutputs } from './check-inputs.ts'
import { checkRows } from './check-rows.ts'
import { createFixture, type Fixture, namespace } from './fixture.ts'
import { podWorkerRows } from './pod-worker-rows.ts'
import { localWorkerRows, objectRows, storeRows } from './rows.ts'

type AuditEvent = {
  level: string
  user: { username: string }
  responseStatus: { code: number }
  annotations?: Record<string, string>
}

let fixture: Fixture
let auditLog: string
let close: () => Promise<void>

before(async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-rights-'))
  auditLog = join(dataDir, 'audit.log')
  const mounts = ['/state/', '/logs/']
  const api = await startApiServer({ dataDir, listen: { host: '127.0.0.1', port: 0 }, mounts, audit: { path: auditLog } })
  const { server } = api
  const target: Target = {
    url: server.url,
    tokens: { admin: server.adminToken },
    pool: createPool(server.url),
    caCertificate: server.caCertificate,
    close: async () => {},
  }
  fixture = await createFixture(target, serverTokenIssuer(server))
  api.mounts.set('/state/', fixture.handlers.state)
  api.mounts.set('/logs/', fixture.handlers.log)
  close = async () => {
    await fixture.close()
    await target.pool.destroy()
    await server.close({ graceMs: 200 })
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
  }
})
after(() => close())

test('the embedded server: users, components and workers may do to objects what their rights say', async () => {
  await checkRows(fixture, objectRows, 'embedded')
})

test('the embedded server: a worker Pod may do to objects and states what its Worker and its Runs allow, and no other Pod may', async () => {
  await checkRows(fixture, podWorkerRows(fixture.podUids), 'embedded')
})

test('the embedded server: a local worker may do what a joined one may, and apply the objects of its Run', async () => {
  await checkRows(fixture, localWorkerRows, 'embedded')
})

test('the embedded server: stores on a listener of their own decide by TokenReview and SubjectAccessReview', async () => {
  await checkRows(fixture, storeRows, 'embedded')
})

test('the embedded server: stores on the address of the API server decide in the same way', async () => {
  await checkRows(fixture, storeRows, 'embedded', 'api')
})

test('the embedded server: a Run gets exactly what it references, until it ends', async () => await checkReferencedInputs(fixture))
test(
  'the embedded server: a worker executes Runs with a Secret, a ConfigMap, git credentials and outputs, and reads no object itself',
  { skip: skipWithout('openssl') },
  async () => await checkExecution(fixture),
)
test('the embedded server: a Run that a newer one has fenced off gets no inputs', async () => await checkFencedInputs(fixture))
test('the embedded server: outputs replace no Secret of a user', async () => await checkTakenOutputs(fixture))
test('the embedded server: no Secrets of Oarlock itself are handed out', async () => await checkReservedNamespaces(fixture))

test('the embedded server: reads of a state are in the audit log, also by the token of the Stack, and the reason of a denied one', async () => {
  const path = `/state/${namespace}/web?audited`
  for (const user of ['admin', 'stack-token', 'viewer', 'wrong']) await fixture.send('api', user, { method: 'GET', path })
  const events = await eventually(
    () =>
      readFileSync(auditLog, 'utf8')
        .split('\n')
        .filter(line => line.includes('?audited')),
    lines => lines.length === 3,
  )
  const [admin, stackToken, viewer] = events.map(line => JSON.parse(line) as AuditEvent)
  deepEqual([admin?.user.username, admin?.responseStatus.code, admin?.level], ['oarlock:admin', 200, 'Metadata'])
  deepEqual([stackToken?.user.username, stackToken?.responseStatus.code], ['oarlock:stack-token', 200])
  deepEqual([viewer?.user.username, viewer?.responseStatus.code], ['system:serviceaccount:users:viewer', 403])
  match(viewer?.annotations?.['authorization.k8s.io/reason'] ?? '', /cannot get resource "stacks\/state"/)
})

test('the embedded server: view, edit and admin include the roles of Oarlock by aggregation', async () => {
  const granted = async (role: string) => {
    const clusterRole = await fixture.client.discover('rbac.authorization.k8s.io/v1', 'ClusterRole')
    const { rules } = (await fixture.client.resource(clusterRole).get(role)) as unknown as { rules: Rule[] }
    const own = rules.filter(({ apiGroups }) => apiGroups.includes('oarlock.dev'))
    return (resource: string, verb: string) => own.some(({ resources, verbs }) => resources.includes(resource) && verbs.includes(verb))
  }
  const [view, edit, admin] = await Promise.all([granted('view'), granted('edit'), granted('admin')])
  const rows = [
    ['stacks', 'list'],
    ['stacks/log', 'get'],
    ['stacks', 'create'],
    ['runs', 'patch'],
    ['stacks/state', 'get'],
    ['stacks/plan', 'get'],
    ['runs/cancel', 'update'],
    ['stacks/approval', 'update'],
    ['stacks/destroy', 'delete'],
    ['runs/binding', 'update'],
  ] as const
  deepEqual(
    rows.map(([resource, verb]) => [resource, verb, view(resource, verb), edit(resource, verb), admin(resource, verb)]),
    [
      ['stacks', 'list', true, true, true],
      ['stacks/log', 'get', true, true, true],
      ['stacks', 'create', false, true, true],
      ['runs', 'patch', false, true, true],
      ['stacks/state', 'get', false, false, true],
      ['stacks/plan', 'get', true, true, true],
      ['runs/cancel', 'update', false, true, true],
      ['stacks/approval', 'update', false, false, true],
      ['stacks/destroy', 'delete', false, false, true],
      ['runs/binding', 'update', false, false, false],
    ],
  )
})

test('oarlock logs and oarlock state work for users who are no administrators, and name the permission that is missing', async () => {
  const clientOf = async (user: string) =>
    await createClient({ cluster: { server: fixture.client.server, token: fixture.tokens[user], insecureSkipTlsVerify: true } })
  const [viewer, owner] = [await clientOf('viewer'), await clientOf('owner')]
  const [run] = fixture.runs
  let text = ''
  await streamLog(viewer, run!, { follow: false }, bytes => {
    text += Buffer.from(bytes).toString()
  })
  match(text, /^hello\n/)
  const absent = { ...run!, metadata: { ...run!.metadata, name: 'absent-1' } }
  await rejects(
    streamLog(viewer, absent, { follow: true }, () => {}),
    /^CliError: run\/absent-1 has no log$/,
  )
  await owner.request({ method: 'POST', path: `/state/${namespace}/db`, body: '{"version":4}' })
  equal(await new StateApi(owner, namespace, 'db').read(), '{"version":4}')
  await rejects(new StateApi(viewer, namespace, 'db').read(), {
    name: 'CliError',
    message:
      'state of stack shop/db: stacks.oarlock.dev "db" is forbidden: User "system:serviceaccount:users:viewer" cannot get resource ' +
      '"stacks/state" in API group "oarlock.dev" in the namespace "shop"',
    exitCode: 4,
    hint: 'the ClusterRole oarlock:admin grants it in namespace shop: kubectl create rolebinding NAME --clusterrole=oarlock:admin --user=USER -n shop',
  })
  const other = { ...run!, metadata: { ...run!.metadata, namespace: 'other' } }
  await rejects(
    streamLog(viewer, other, { follow: false }, () => {}),
    /^CliError: log of run\/web-1: stacks\.oarlock\.dev is forbidden: User .* cannot get resource "stacks\/log" .* in the namespace "other"$/,
  )
  await Promise.all([viewer.close(), owner.close()])
})
