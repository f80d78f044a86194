import { deepEqual, equal, match, rejects, throws } from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { createClient, secretResource } from '../client/index.ts'
import { describeResource } from '../object/index.ts'
import { readSharedTrust, startServer, writeSharedTrust } from './index.ts'

type ReviewBody = { spec: { token: string }; status?: { authenticated?: boolean; user?: { username: string; groups: string[] } } }
const tokenReview = describeResource<ReviewBody>({
  ...{ group: 'authentication.k8s.io', version: 'v1', kind: 'TokenReview', plural: 'tokenreviews', scope: 'Cluster' },
})

test('a token that is bound to a Secret of another server is valid until the Secret is deleted', { timeout: 60_000 }, async t => {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-trust-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const options = { listen: { port: 0 }, storage: { synchronous: 'OFF' } } as const
  const home = await startServer({ ...options, dataDir: join(root, 'home') })
  t.after(() => home.close({ graceMs: 10 }))
  const homeClient = await createClient({ kubeconfig: home.kubeconfigPath })
  t.after(() => homeClient.close())
  const pkiDir = join(root, 'other', 'pki')
  mkdirSync(pkiDir, { recursive: true })
  const trust = await readSharedTrust(join(root, 'home', 'pki'), Date.now())
  writeSharedTrust(pkiDir, trust)
  writeSharedTrust(pkiDir, trust)
  throws(
    () => writeSharedTrust(pkiDir, { ...trust, 'token-key': 'x' }),
    /token-key differs from that of the home partition: use an empty data directory/,
  )

  let isHomeDown = false
  let reviews = 0
  const other = await startServer({
    ...{ ...options, dataDir: join(root, 'other'), partition: 1 },
    async reviewToken(token) {
      reviews++
      if (isHomeDown) throw new Error('home does not answer')
      const { status } = await homeClient.resource(tokenReview).create({ metadata: { name: '' }, spec: { token } })
      return status?.authenticated && status.user ? { name: status.user.username, groups: status.user.groups } : undefined
    },
  })
  t.after(() => other.close({ graceMs: 10 }))
  const secret = await homeClient.resource(secretResource).create({ metadata: { namespace: 'default', name: 'credential' } } as never)
  const { uid } = secret.metadata
  const token = home.issueToken({
    name: 'worker',
    groups: ['system:masters'],
    ttlMs: 60_000,
    boundTo: { namespace: 'default', name: 'credential', uid },
  })
  const server = { server: other.url, caCertificate: other.caCertificate }
  const client = await createClient({ cluster: { ...server, token } })
  t.after(() => client.close())
  const secrets = client.resource(secretResource)
  deepEqual((await secrets.list({ namespace: 'default' })).items, [])
  await secrets.list({ namespace: 'default' })
  equal(reviews, 1)
  const review = await client.resource(tokenReview).create({ metadata: { name: '' }, spec: { token } })
  equal(review.status?.user?.username, 'worker')

  // What this server knows itself is not asked for.
  const own = await createClient({
    cluster: { ...server, token: home.issueToken({ name: 'ann', groups: ['system:masters'], ttlMs: 60_000 }) },
  })
  t.after(() => own.close())
  await own.resource(secretResource).list({ namespace: 'default' })
  equal(reviews, 1)
  const wrong = await createClient({ cluster: { ...server, token: 'wrong' } })
  t.after(() => wrong.close())
  await rejects(wrong.resource(secretResource).list({ namespace: 'default' }), /Unauthorized/)
  equal(reviews, 2)

  isHomeDown = true
  await rejects(wrong.request({ method: 'GET', path: '/api/v1/secrets', timeoutMs: 2_000 }), error => {
    match(String(error), /home does not answer|InternalError|internal error/i)
    return true
  })
  isHomeDown = false
  await homeClient.resource(secretResource).delete('credential', { namespace: 'default' })
  await eventually(
    async () =>
      await secrets.list({ namespace: 'default' }).then(
        () => false,
        error => /Unauthorized/.test(String(error)),
      ),
    'the token to end with its Secret',
    20_000,
  )
})
