import { deepEqual, equal, match, notEqual, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { oarlockResources, systemNamespace, workerPoolResource } from '../../api/index.ts'
import { type Client, createClient, installKinds, namespaceResource, secretResource } from '../../kubernetes/client/index.ts'
import { type ApiServer, startServer } from '../../kubernetes/server/index.ts'
import { Credential } from './credential.ts'
import { createJoinHandler } from './join-handler.ts'
import { joinTokenName, workerCredentialName } from './join-secrets.ts'
import { JoinService } from './join-service.ts'
import { parseJoinToken } from './join-token.ts'
import { createJoinToken, listJoinTokens } from './manage-tokens.ts'

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
  await client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  await client.resource(workerPoolResource).create({ metadata: { name: 'edge' }, spec: { mode: 'External' } })
  joinService = new JoinService({ client, issueToken: user => server.issueToken(user), ttlMs })
  handler = createJoinHandler({ joinService, caCertificate: server.caCertificate })
})
after(async () => {
  await client?.close()
  await server?.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const token = async (options: { uses?: number; worker?: string; nowMs?: number } = {}) =>
  (await createJoinToken(client, server.caCertificate, { pool: 'edge', ttlMs: 60_000, ...options })).text
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

test('rejects invalid tokens with 401, invalid names with 422, and expired tokens with 401', async () => {
  const text = await token()
  deepEqual(await Promise.all([undefined, 7, '', 'x', text.slice(0, -1)].map(wrong => rejection(wrong))), [401, 401, 401, 401, 401])
  deepEqual(await Promise.all(['Not Good', 'a'.repeat(201), 7, {}].map(name => rejection(text, name))), [422, 422, 422, 422])
  equal(await rejection(await token({ nowMs: Date.now() - 61_000 })), 401)
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

test('rejects a valid token with 429 after twenty invalid ones in a second', async () => {
  const nowMs = Date.now()
  const own = new JoinService({ client, issueToken: user => server.issueToken(user), nowMs: () => nowMs })
  const text = await token()
  for (let i = 0; i < 20; i++) equal(((await own.join('x', 'vm')) as { code: number }).code, 401)
  equal(((await own.join(text, 'vm')) as { code: number }).code, 429)
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
  await client.resource(secretResource).delete(workerCredentialName(response.worker), { namespace: systemNamespace })
  equal(await isAccepted(own), false)
  await eventually(() => errors.length > 0, 'the error to be reported')
  match(errors[0]!.message, /returned 401/)
  credential.stop()
  await Promise.all([own.close(), old.close()])
})
