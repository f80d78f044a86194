import { deepEqual, equal, match, notEqual, ok, rejects } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { oarlockResources, systemNamespace, workerPoolResource, workersNamespace } from '../../api/index.ts'
import { type Client, createClient, installKinds, namespaceResource, secretResource } from '../../kubernetes/client/index.ts'
import { type ApiServer, startServer } from '../../kubernetes/server/index.ts'
import { joinedGroup, workersGroup, workerUserName } from '../worker-identity.ts'
import { Credential } from './credential.ts'
import { createJoinHandler } from './join-handler.ts'
import { joinTokenName, workerCredentialName } from './join-secrets.ts'
import { JoinService } from './join-service.ts'
import { parseJoinToken } from './join-token.ts'
import { createJoinToken, listJoinTokens } from './manage-tokens.ts'
import { serverTokenIssuer } from './server-token-issuer.ts'
import { workerLabelsAnnotation } from './worker-labels.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-join-'))
/** Short enough to be renewed during the test. */
const ttlMs = 3_000
let server: ApiServer
let client: Client
let joinService: JoinService

before(async () => {
  let handler: ReturnType<typeof createJoinHandler> | undefined
  server = await startServer({
    dataDir,
    listen: { port: 0 },
    storage: { synchronous: 'OFF' },
    mounts: [
      {
        prefix: '/join',
        handler: (request, response, { user }) => handler!(request, response, { user: user && { ...user, groups: [...user.groups] } }),
      },
    ],
  })
  client = await createClient({ kubeconfig: server.kubeconfigPath })
  await installKinds(client, oarlockResources)
  for (const name of [systemNamespace, workersNamespace])
    await client.resource(namespaceResource).apply({ metadata: { name } }, { force: true })
  await client.resource(workerPoolResource).create({ metadata: { name: 'edge' }, spec: { mode: 'External' } })
  joinService = new JoinService({ client, issueCredential: serverTokenIssuer(server), ttlMs })
  handler = createJoinHandler({ joinService, caCertificate: server.caCertificate })
})
after(async () => {
  await client?.close()
  await server?.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const token = async (options: { uses?: number; worker?: string; nowMs?: number } = {}) =>
  (await createJoinToken(client, server.caCertificate, { pool: 'edge', ttlMs: 60_000, ...options })).text
/** One whose Secret was written by other means than {@link createJoinToken}, which rejects the name. */
const reservedToken = async (worker: string, pool = 'edge') => {
  const { text, id } = await createJoinToken(client, server.caCertificate, { pool, worker: `${pool}-1`, ttlMs: 60_000, uses: 1 })
  const patch = { stringData: { worker } }
  await client.resource(secretResource).patch(joinTokenName(id), patch, { type: 'merge', namespace: systemNamespace })
  return text
}
const joinWith = async (text: unknown, name?: unknown) => {
  const outcome = await joinService.join(text, name)
  if ('code' in outcome) throw new Error(`${outcome.code}: ${outcome.message}`)
  return outcome
}
const rejection = async (text: unknown, name?: unknown) => {
  const outcome = await joinService.join(text, name)
  return 'code' in outcome ? outcome.code : 200
}

test('assigns the requested name with a random suffix, so that no worker takes the name of another', async () => {
  const text = await token()
  const [one, other] = [await joinWith(text, 'vm'), await joinWith(text, 'vm')]
  match(one.worker, /^vm-[a-z0-9]{6}$/)
  notEqual(one.worker, other.worker)
  match((await joinWith(text)).worker, /^edge-[a-z0-9]{6}$/)
  equal((await joinWith(await token({ worker: 'pod-1' }), 'another')).worker, 'pod-1')
  equal(await rejection(await token({ worker: 'pod-1' })), 409)
})

test('a token for one name is deleted when it is used, another one is kept with the workers that joined with it', async () => {
  const stored = async (text: string) => (await listJoinTokens(client)).find(({ id }) => id === parseJoinToken(text)?.id)
  const [named, unnamed] = [await token({ worker: 'pod-2', uses: 1 }), await token({ uses: 1 })]
  deepEqual(await Promise.all([rejection(named), rejection(named)]).then(codes => codes.toSorted()), [200, 401])
  equal(await stored(named), undefined)
  const { worker } = await joinWith(unnamed)
  deepEqual(await stored(unnamed).then(found => [found?.uses, found?.workers]), [0, [worker]])
  equal(await rejection(unnamed), 401)
})

test('rejects invalid tokens with 401, invalid names with 422, and expired tokens with 401', async () => {
  const text = await token()
  deepEqual(await Promise.all([undefined, 7, '', 'x', text.slice(0, -1)].map(wrong => rejection(wrong))), [401, 401, 401, 401, 401])
  deepEqual(await Promise.all(['Not Good', 'a'.repeat(201), 7, {}].map(name => rejection(text, name))), [422, 422, 422, 422])
  equal(await rejection(await token({ nowMs: Date.now() - 61_000 })), 401)
})

test('rejects names that are reserved for components with 422, without a use of the token', async () => {
  const reserved = ['default', 'oarlock-controller', 'oarlock-later']
  for (const worker of reserved) equal(await rejection(await reservedToken(worker)), 422)
  const text = await token({ uses: 1 })
  equal(await rejection(text, 'oarlock-controller'), 422)
  match((await joinWith(text, 'default')).worker, /^default-/)
})

test('workers of a pool whose name begins with oarlock- can join, but not under the name of a component', async () => {
  await client.resource(workerPoolResource).create({ metadata: { name: 'oarlock-edge' }, spec: { mode: 'External' } })
  const tokenOf = async (worker?: string) =>
    (await createJoinToken(client, server.caCertificate, { pool: 'oarlock-edge', worker, ttlMs: 60_000 })).text
  match((await joinWith(await tokenOf())).worker, /^oarlock-edge-/)
  equal((await joinWith(await tokenOf('oarlock-edge-1'))).worker, 'oarlock-edge-1')
  equal(await rejection(await reservedToken('oarlock-controller', 'oarlock-edge')), 422)
  equal(await rejection(await reservedToken('oarlock-controller', 'oarlock')), 422)
})

test('a join token for a reserved name is rejected when it is created', async () => {
  const tokens = async () => (await listJoinTokens(client)).length
  const count = await tokens()
  for (const [worker, pool] of [
    ['default', 'edge'],
    ['oarlock-later', 'edge'],
    ['oarlock-controller', 'oarlock'],
  ] as const)
    await rejects(createJoinToken(client, server.caCertificate, { pool, worker, ttlMs: 60_000 }), {
      name: 'RangeError',
      message: `name ${worker} is reserved for components of Oarlock: use one that does not begin with "oarlock-"`,
    })
  equal(await tokens(), count)
})

test('a malformed token Secret is rejected with 401 and does not break the list of tokens', async () => {
  const [text, valid] = [await token(), await token()]
  const id = parseJoinToken(text)!.id
  const secrets = client.resource(secretResource)
  await secrets.patch(joinTokenName(id), { stringData: { labelPolicy: '{bad' } }, { type: 'merge', namespace: systemNamespace })
  equal(await rejection(text), 401)
  const ids = (await listJoinTokens(client)).map(each => each.id)
  deepEqual([ids.includes(id), ids.includes(parseJoinToken(valid)!.id)], [false, true])
  equal(await rejection(valid), 200)
})

test('invalid tokens, malformed or well-formed, do not stop a join with a valid one', async () => {
  const nowMs = Date.now()
  const own = new JoinService({ client, issueCredential: serverTokenIssuer(server), nowMs: () => nowMs })
  const text = await token()
  const codes = async (wrong: string) =>
    await Promise.all(Array.from({ length: 100 }, async () => ((await own.join(wrong, 'vm')) as { code: number }).code))
  deepEqual(new Set(await codes('x')), new Set([401]))
  deepEqual(new Set(await codes(text.replace(/[a-z0-9]{10}/, '0123456789'))), new Set([401]))
  ok('worker' in (await own.join(text, 'vm')))
})

test('a client with too many lookups of tokens gets 429, and a client at another address joins meanwhile', async () => {
  const own = new JoinService({ client, issueCredential: serverTokenIssuer(server) })
  const text = await token()
  const wrong = text.replace(/[a-z0-9]{10}/, '0123456789')
  const attempts = Array.from({ length: 300 }, async () => ((await own.join(wrong, 'vm', undefined, '10.0.0.9')) as { code: number }).code)
  ok('worker' in (await own.join(text, 'vm', undefined, '10.0.0.1')))
  const codes = await Promise.all(attempts)
  deepEqual(
    [401, 429].map(code => codes.filter(each => each === code).length),
    [8 + 256, 300 - 8 - 256],
  )
})

for (const { name, path, headers, chunk, want } of [
  {
    name: 'a body above the limit is rejected by its length',
    path: '/join',
    headers: { 'content-length': 9_999_999_999 },
    chunk: '{',
    want: 400,
  },
  { name: 'a body above the limit without a length is rejected', path: '/join', headers: {}, chunk: 'x'.repeat(20_000), want: 400 },
  {
    name: 'a renewal without a credential is rejected before its body',
    path: '/join/renew',
    headers: { 'content-length': 9 },
    chunk: '{',
    want: 401,
  },
]) {
  test(`${name}, while the client still sends it`, async () => {
    const sent = request(`${server.url}${path}`, { method: 'POST', headers, ca: server.caCertificate, agent: false })
    sent.on('error', () => {})
    sent.write(chunk)
    const [response] = await once(sent, 'response')
    equal(response.statusCode, want)
    sent.destroy()
  })
}

test('a worker whose labels annotation is malformed gets 403, and no other worker is affected', async () => {
  const renew = async (worker: string) => {
    const outcome = await joinService.renew({ name: workerUserName(worker), groups: [workersGroup, joinedGroup] })
    return 'code' in outcome ? `${outcome.code} ${outcome.message}` : outcome.labels
  }
  const [one, other] = [await joinWith(await token(), 'malformed'), await joinWith(await token(), 'intact')]
  const name = workerCredentialName(one.worker)
  const patch = { metadata: { annotations: { [workerLabelsAnnotation]: '{' } } }
  await client.resource(secretResource).patch(name, patch, { type: 'merge', namespace: workersNamespace })
  equal(await renew(one.worker), `403 the annotation ${workerLabelsAnnotation} of Secret ${name} is malformed: delete it and join again`)
  deepEqual(await renew(other.worker), {})
})

test('renews a credential until it is revoked, while the previous one expires', async () => {
  const response = await joinWith(await token(), 'fresh')
  const errors: Error[] = []
  const { caCertificate, url } = server
  const credential = new Credential({ server: url, caCertificate, response, onError: error => errors.push(error) })
  const own = await createClient({ cluster: { server: url, caCertificate, token: credential.get } })
  const isAccepted = async (user: Client) =>
    await user
      .request({
        method: 'POST',
        path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      })
      .then(
        () => true,
        () => false,
      )
  ok(await isAccepted(own))
  const old = await createClient({ cluster: { server: url, caCertificate, token: response.credential } })
  await eventually(async () => !(await isAccepted(old)), 'the previous credential to expire')
  notEqual(credential.get(), response.credential)
  ok(await isAccepted(own))
  await client.resource(secretResource).delete(workerCredentialName(response.worker), { namespace: workersNamespace })
  equal(await isAccepted(own), false)
  await eventually(() => errors.length > 0, 'the error to be reported')
  match(errors[0]!.message, /returned 401/)
  credential.stop()
  await Promise.all([own.close(), old.close()])
})
