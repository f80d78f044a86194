import assert from 'node:assert/strict'
import { createPublicKey, verify } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { makeDataDir, startTestServer, type TestServer } from '../server.testing.ts'

type Body = Record<string, unknown> & { metadata: { uid: string; name: string; annotations?: Record<string, string> }; message?: string }

describe('service accounts', () => {
  let server: TestServer
  before(async () => {
    server = await startTestServer({ namespaceDefaults: true })
  })
  after(() => server.close())

  const call = (path: string, options = {}) => server.call<Body>(path, options)
  const make = async (path: string, body: object) => {
    const answer = await call(path, { body })
    assert.equal(answer.code, 201, JSON.stringify(answer.body))
    return answer.body
  }
  async function tokenFor(namespace: string, name: string, spec: object = {}): Promise<string> {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
    return ((await make(`/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, body)).status as { token: string }).token
  }
  const isKnown = async (token: string) => (await call('/api', { token })).code === 200

  test('a new namespace has a ServiceAccount and the certificate authority in its first revision', async () => {
    await make('/api/v1/namespaces', { metadata: { name: 'fresh' } })
    assert.equal((await call('/api/v1/namespaces/fresh/serviceaccounts/default')).code, 200)
    const { body } = await call('/api/v1/namespaces/fresh/configmaps/kube-root-ca.crt')
    assert.deepEqual(body.data, { 'ca.crt': server.server.caCertificate })
    const applied = await call('/api/v1/namespaces/applied?fieldManager=me', {
      method: 'PATCH',
      type: 'application/apply-patch+yaml',
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'applied' } },
    })
    assert.equal(applied.code, 201)
    assert.equal((await call('/api/v1/namespaces/applied/serviceaccounts/default')).code, 200)
  })

  test('the ServiceAccount and the certificate authority are recreated when they are deleted, and deleted with the namespace', async () => {
    await make('/api/v1/namespaces', { metadata: { name: 'short' } })
    const { body: first } = await call('/api/v1/namespaces/short/serviceaccounts/default')
    await call('/api/v1/namespaces/short/serviceaccounts/default', { method: 'DELETE' })
    await eventually(async () => {
      const { body } = await call('/api/v1/namespaces/short/serviceaccounts/default')
      return body.metadata?.uid !== undefined && body.metadata.uid !== first.metadata.uid
    }, 'another account')
    const path = '/api/v1/namespaces/short/configmaps/kube-root-ca.crt'
    await call(path, { method: 'PATCH', type: 'application/merge-patch+json', body: { data: { 'ca.crt': 'mine' } } })
    await eventually(async () => {
      const { body } = await call(path)
      return (body.data as Record<string, string>)['ca.crt'] === server.server.caCertificate
    }, 'the right certificate')
    await call(path, { method: 'DELETE' })
    await eventually(async () => (await call(path)).code === 200, 'another ConfigMap')
    await call('/api/v1/namespaces/short', { method: 'DELETE' })
    await eventually(async () => (await call('/api/v1/namespaces/short')).code === 404, 'no namespace')
    assert.equal((await call('/api/v1/namespaces/short/serviceaccounts/default')).code, 404)
  })

  test('a token can be verified with the published keys', async () => {
    const token = await tokenFor('default', 'default', { audiences: ['vault'], expirationSeconds: 900 })
    const [header = '', claims = '', signature = ''] = token.split('.')
    const { kid, alg } = JSON.parse(Buffer.from(header, 'base64url').toString())
    const { body } = await call('/openid/v1/jwks')
    const keys = JSON.parse(String(body)) as { keys: { kid: string; alg: string }[] }
    const jwk = keys.keys.find(candidate => candidate.kid === kid)
    assert.equal(jwk?.alg, alg)
    const key = createPublicKey({ key: jwk as object, format: 'jwk' })
    const data = Buffer.from(`${header}.${claims}`)
    assert.ok(verify('sha256', data, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url')))
    const { sub, aud, iss, exp, iat } = JSON.parse(Buffer.from(claims, 'base64url').toString())
    assert.equal(sub, 'system:serviceaccount:default:default')
    assert.deepEqual(aud, ['vault'])
    assert.equal(exp - iat, 900)
    const { body: configuration } = await call('/.well-known/openid-configuration')
    assert.equal(configuration.issuer, iss)
    assert.equal(configuration.jwks_uri, `${server.server.url}/openid/v1/jwks`)
  })

  test('rejects a token that was changed', async () => {
    const token = await tokenFor('default', 'default')
    const [header = '', claims = '', signature = ''] = token.split('.')
    const other = { ...JSON.parse(Buffer.from(claims, 'base64url').toString()), sub: 'system:serviceaccount:kube-system:admin' }
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    assert.ok(await isKnown(token))
    for (const forged of [
      `${header}.${encode(other)}.${signature}`,
      `${header}.${claims}.`,
      `${encode({ alg: 'none' })}.${claims}.`,
      `${encode({ alg: 'HS256', typ: 'JWT' })}.${claims}.${signature}`,
      `${header}.${claims}.${signature}.${signature}`,
      `${header}.${claims}.${'A'.repeat(signature.length)}`,
      token.slice(0, -8),
      '..',
      '.'.repeat(4_000),
    ]) {
      assert.equal((await call('/api', { token: forged })).code, 401, forged.slice(0, 40))
    }
  })

  test('deleting the account invalidates its token on the connection that used it; open watches continue', async () => {
    await make('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'short-lived' } })
    const token = await tokenFor('default', 'short-lived')
    for (let i = 0; i < 5; i++) assert.ok(await isKnown(token))
    await call('/api/v1/namespaces/default/serviceaccounts/short-lived', { method: 'DELETE' })
    for (let i = 0; i < 5; i++) assert.equal(await isKnown(token), false)
    await make('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'short-lived' } })
    assert.equal(await isKnown(token), false)
  })

  test('deleting a Node invalidates the tokens that are bound to it', async () => {
    await make('/api/v1/nodes', { metadata: { name: 'n1' } })
    const boundObjectRef = { apiVersion: 'v1', kind: 'Node', name: 'n1' }
    const token = await tokenFor('default', 'default', { boundObjectRef })
    assert.ok(await isKnown(token))
    await call('/api/v1/nodes/n1', { method: 'DELETE' })
    assert.equal(await isKnown(token), false)
  })

  test('a token Secret is filled in, and deleted with its account', async () => {
    await make('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'old-style' } })
    const path = '/api/v1/namespaces/default/secrets'
    const annotations = { 'kubernetes.io/service-account.name': 'old-style' }
    await make(path, { metadata: { name: 'tok', annotations }, type: 'kubernetes.io/service-account-token' })
    let data: Record<string, string> = {}
    await eventually(async () => {
      const { body } = await call(`${path}/tok`)
      data = (body.data ?? {}) as Record<string, string>
      return data.token !== undefined
    }, 'a token')
    const text = (name: string) => Buffer.from(data[name] ?? '', 'base64').toString()
    assert.equal(text('namespace'), 'default')
    assert.equal(text('ca.crt'), server.server.caCertificate)
    assert.ok(await isKnown(text('token')))
    // The token is valid as long as the Secret contains it.
    const other = { data: { token: Buffer.from('another').toString('base64') } }
    await call(`${path}/tok`, { method: 'PATCH', type: 'application/merge-patch+json', body: other })
    assert.equal(await isKnown(text('token')), false)
    await call('/api/v1/namespaces/default/serviceaccounts/old-style', { method: 'DELETE' })
    await eventually(async () => (await call(`${path}/tok`)).code === 404, 'no Secret')
  })

  test('a token Secret of an account that does not exist is deleted', async () => {
    const annotations = { 'kubernetes.io/service-account.name': 'missing' }
    const path = '/api/v1/namespaces/default/secrets'
    await make(path, { metadata: { name: 'lost', annotations }, type: 'kubernetes.io/service-account-token' })
    await eventually(async () => (await call(`${path}/lost`)).code === 404, 'no Secret')
  })
})

describe('bootstrap and aggregated roles', () => {
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const names = (rules: unknown) => (rules as { resources?: string[] }[]).flatMap(rule => rule.resources ?? [])

  test('an aggregated ClusterRole is updated when a role that it selects changes', async () => {
    const server = await startTestServer()
    try {
      const boats = [{ apiGroups: ['example.com'], resources: ['boats'], verbs: ['get'] }]
      const labels = { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' }
      await server.call(`${rbac}/clusterroles`, { body: { metadata: { name: 'boats', labels }, rules: boats } })
      const includesBoats = async (role: string) => {
        const { body } = await server.call<{ rules: unknown[] | null }>(`${rbac}/clusterroles/${role}`)
        return names(body.rules).includes('boats')
      }
      // Aggregated to admin through edit, in two further steps.
      await eventually(async () => (await includesBoats('view')) && (await includesBoats('admin')), 'view and admin to include boats')
      await server.call(`${rbac}/clusterroles/boats`, { method: 'DELETE' })
      await eventually(async () => !(await includesBoats('view')) && !(await includesBoats('admin')), 'view and admin to exclude boats')
    } finally {
      await server.close()
    }
  })

  test('a start restores missing rules and subjects, keeps objects with autoupdate false, and writes nothing else', async () => {
    const dataDir = makeDataDir()
    const patch = { method: 'PATCH', type: 'application/merge-patch+json' }
    const first = await startTestServer({ dataDir })
    await first.call(`${rbac}/clusterroles/system:discovery`, { method: 'DELETE' })
    await first.call(`${rbac}/clusterroles/cluster-admin`, { ...patch, body: { rules: [] } })
    const annotations = { 'rbac.authorization.kubernetes.io/autoupdate': 'false' }
    await first.call(`${rbac}/clusterroles/system:basic-user`, { ...patch, body: { metadata: { annotations }, rules: [] } })
    await first.call(`${rbac}/clusterrolebindings/cluster-admin`, { ...patch, body: { subjects: [] } })
    await first.close()
    const second = await startTestServer({ dataDir })
    const get = async (path: string) =>
      (await second.call<{ rules: unknown[] | null; subjects: { name: string }[] }>(`${rbac}/${path}`)).body
    assert.equal((await get('clusterroles/system:discovery')).rules?.length, 1)
    assert.equal((await get('clusterroles/cluster-admin')).rules?.length, 2)
    assert.equal((await get('clusterroles/system:basic-user')).rules?.length ?? 0, 0)
    assert.deepEqual(
      (await get('clusterrolebindings/cluster-admin')).subjects.map(subject => subject.name),
      ['system:masters'],
    )
    await second.close()
    // On another port the start would publish the new address.
    const third = await startTestServer({ dataDir, listen: { port: second.server.port } })
    const { writes } = third.server.stats()
    await third.close()
    assert.equal(writes, 0)
  })
})
