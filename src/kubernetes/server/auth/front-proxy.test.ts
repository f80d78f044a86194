import { deepEqual, equal, throws } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import { test } from 'node:test'
import { startServer } from '../index.ts'
import { makeDataDir } from '../server.testing.ts'
import { FrontProxy } from './front-proxy.ts'
import { issueClientCertificate, readCertificates } from './index.ts'

test('a proxy acts as the user that it names, and no other client can name one', async t => {
  const [dataDir, proxyDir] = [makeDataDir(), makeDataDir()]
  for (const dir of [proxyDir]) mkdirSync(join(dir, 'pki'))
  const proxyPki = join(proxyDir, 'pki')
  const { ca: caCertificate } = await readCertificates(proxyPki, '127.0.0.1', Date.now())
  const options = { dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' as const } }
  const server = await startServer({ ...options, frontProxy: { caCertificate, allowedNames: ['gateway'] } })
  t.after(async () => {
    await server.close()
    for (const dir of [dataDir, proxyDir]) rmSync(dir, { recursive: true, force: true })
  })
  const certificateOf = (pkiDir: string, name: string) =>
    issueClientCertificate(pkiDir, { name, groups: ['system:masters'], ttlMs: 3_600_000 }, Date.now())
  const [gateway, other, admin] = await Promise.all([
    certificateOf(proxyPki, 'gateway'),
    certificateOf(proxyPki, 'other'),
    certificateOf(join(dataDir, 'pki'), 'root'),
  ])
  const reviewAs = async (client: { certificate: string; key: string } | undefined, headers: Record<string, string>) => {
    const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' })
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; user?: unknown }>()
    const request = httpsRequest(
      `${server.url}/apis/authentication.k8s.io/v1/selfsubjectreviews`,
      {
        ...{ method: 'POST', ca: server.caCertificate, cert: client?.certificate, key: client?.key },
        headers: { ...headers, 'Content-Type': 'application/json' },
        agent: false,
      },
      response => {
        let text = ''
        response.on('data', chunk => (text += chunk))
        void once(response, 'end').then(() => {
          const { status } = JSON.parse(text) as { status: { userInfo?: unknown } }
          resolve({ status: response.statusCode ?? 0, ...(status?.userInfo !== undefined && { user: status.userInfo }) })
        })
      },
    )
    request.on('error', reject)
    request.end(body)
    return await promise
  }
  const named = {
    'X-Remote-User': 'ada',
    'X-Remote-Group': 'crew,deck',
    'X-Remote-Uid': 'u1',
    'X-Remote-Extra-Example.com%2fteam': 'a%2Cb, c',
  }
  deepEqual(await reviewAs(gateway, named), {
    status: 201,
    user: {
      ...{ username: 'ada', uid: 'u1', groups: ['crew', 'deck', 'system:authenticated'] },
      extra: { 'example.com/team': ['a,b', 'c'] },
    },
  })
  // Not with the rights of the proxy itself, nor with a token that it passes on.
  equal((await reviewAs(gateway, {})).status, 401)
  equal((await reviewAs(gateway, { Authorization: `Bearer ${server.adminToken}` })).status, 401)
  equal((await reviewAs(other, named)).status, 401)
  // Everyone else is who the credential says.
  equal(((await reviewAs(admin, named)).user as { username: string }).username, 'root')
  equal(
    ((await reviewAs(undefined, { ...named, Authorization: `Bearer ${server.adminToken}` })).user as { username: string }).username,
    'oarlock:admin',
  )
  equal((await reviewAs(undefined, named)).status, 401)
})

test('options that cannot work are named', () => {
  throws(() => new FrontProxy({ caCertificate: 'x', allowedNames: ['a'] }), /frontProxy.caCertificate is not a certificate in PEM/)
  throws(() => new FrontProxy({ caCertificate: 'x', allowedNames: [] }), /frontProxy.allowedNames must have at least one name/)
})
