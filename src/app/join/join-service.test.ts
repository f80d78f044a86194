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
import { workerCredentialName } from './join-secrets.ts'
import { JoinService } from './join-service.ts'
import { createJoinToken } from './manage-tokens.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-join-'))
/** So short that it is renewed while the test looks on. */
const ttlMs = 3_000
let server: ApiServer
let client: Client
let desk: JoinService

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
  desk = new JoinService({ client, issueToken: user => server.issueToken(user), ttlMs })
  handler = createJoinHandler({ desk, caCertificate: server.caCertificate })
})
after(async () => {
  await client?.close()
  await server?.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const token = async (options: { uses?: number; worker?: string; nowMs?: number } = {}) =>
  (await createJoinToken(client, server.caCertificate, { pool: 'edge', ttlMs: 60_000, ...options })).text
const join_ = async (text: unknown, name?: unknown) => {
  const outcome = await desk.join(text, name)
  if ('code' in outcome) throw new Error(`${outcome.code}: ${outcome.message}`)
  return outcome
}
const refusal = async (text: unknown, name?: unknown) => {
  const outcome = await desk.join(text, name)
  return 'code' in outcome ? outcome.code : 200
}

test('the name is the one that was wanted and six letters more: nobody joins as a worker that is there', async () => {
  const text = await token()
  const [one, other] = [await join_(text, 'vm'), await join_(text, 'vm')]
  match(one.worker, /^vm-[a-z0-9]{6}$/)
  notEqual(one.worker, other.worker)
  match((await join_(text)).worker, /^edge-[a-z0-9]{6}$/)
  equal((await join_(await token({ worker: 'pod-1' }), 'another')).worker, 'pod-1')
  equal(await refusal(await token({ worker: 'pod-1' })), 409)
})

test('what is refused, and with which number', async () => {
  const text = await token()
  deepEqual(await Promise.all([undefined, 7, '', 'x', text.slice(0, -1)].map(wrong => refusal(wrong))), [401, 401, 401, 401, 401])
  deepEqual(await Promise.all(['Not Good', 'a'.repeat(201), 7, {}].map(name => refusal(text, name))), [422, 422, 422, 422])
  equal(await refusal(await token({ nowMs: Date.now() - 61_000 })), 401)
})

test('guessing is slow: after twenty wrong ones in a second even a right one waits', async () => {
  const nowMs = Date.now()
  const own = new JoinService({ client, issueToken: user => server.issueToken(user), nowMs: () => nowMs })
  const text = await token()
  for (let i = 0; i < 20; i++) equal(((await own.join('x', 'vm')) as { code: number }).code, 401)
  equal(((await own.join(text, 'vm')) as { code: number }).code, 429)
})

test('a credential is kept fresh beyond its end, until it is revoked; the old one ends by itself', async () => {
  const admission = await join_(await token(), 'fresh')
  const errors: Error[] = []
  const { caCertificate, url } = server
  const credential = new Credential({ server: url, caCertificate, admission, onError: error => errors.push(error) })
  const own = await createClient({ cluster: { server: url, caCertificate, token: credential.get } })
  const mayAsk = async (asker: Client) =>
    await asker
      .request({
        method: 'POST',
        path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      })
      .then(
        () => true,
        () => false,
      )
  ok(await mayAsk(own))
  const old = await createClient({ cluster: { server: url, caCertificate, token: admission.credential } })
  await eventually(async () => !(await mayAsk(old)), 'the old credential to end')
  notEqual(credential.get(), admission.credential)
  ok(await mayAsk(own))
  await client.resource(secretResource).delete(workerCredentialName(admission.worker), { namespace: systemNamespace })
  equal(await mayAsk(own), false)
  await eventually(() => errors.length > 0, 'the refusal to be told')
  match(errors[0]!.message, /answered 401/)
  credential.stop()
  await Promise.all([own.close(), old.close()])
})
