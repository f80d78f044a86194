import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createProxy } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { configMapResource, createClient } from '../src/kubernetes/client/index.ts'
import { type ApiServer, adminsGroup, issueClientCertificate, startServer } from '../src/kubernetes/server/index.ts'
import { eventually } from './support/eventually.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-client-authentication-'))
let server: ApiServer

before(async () => {
  server = await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } })
})

after(async () => {
  await server?.close()
  rmSync(dataDir, { recursive: true, force: true })
})

test('a wrong token and a wrong certificate authority give different errors', async () => {
  const ca = { server: server.url, caCertificate: server.caCertificate }
  const wrongToken = await createClient({ cluster: { ...ca, token: 'nonsense' } })
  await rejects(wrongToken.resource(configMapResource).list(), { code: 401 })
  const noCa = await createClient({ cluster: { server: server.url } })
  await rejects(noCa.resource(configMapResource).list(), {
    name: 'ConnectionError',
    message: /is certificate-authority in the kubeconfig correct/,
  })
  await Promise.all([wrongToken.close(), noCa.close()])
})

test('uses the proxy of the kubeconfig', async () => {
  const connects: string[] = []
  const proxy = createProxy()
  proxy.on('connect', ({ url = '' }, socket) => {
    connects.push(url)
    const [host, port] = url.split(':')
    const target = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      target.pipe(socket).pipe(target)
    })
    for (const end of [target, socket]) end.on('error', () => [target, socket].forEach(other => void other.destroy()))
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  const kubeconfig = join(dataDir, 'proxy-kubeconfig')
  const cluster = {
    server: server.url,
    'certificate-authority-data': Buffer.from(server.caCertificate).toString('base64'),
    'proxy-url': `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
  }
  const token = server.issueToken({ name: 'ann', groups: [adminsGroup], ttlMs: 60_000 })
  const config = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token } }],
  }
  writeFileSync(kubeconfig, JSON.stringify(config))
  const viaProxy = await createClient({ kubeconfig })
  ok((await viaProxy.resource(configMapResource).list()).metadata.resourceVersion)
  deepEqual(connects, [new URL(server.url).host])
  await viaProxy.close()
  await new Promise(resolve => proxy.close(resolve))
})

test('accepts a client certificate as PEM text, and from an exec plugin that is run again after its expiry', async () => {
  const user = { name: 'ann', groups: [adminsGroup], ttlMs: 60_000 }
  const ca = { server: server.url, caCertificate: server.caCertificate }
  const { certificate, key } = await issueClientCertificate(join(dataDir, 'pki'), user, Date.now())
  const direct = await createClient({ cluster: { ...ca, clientCertificate: certificate, clientKey: key } })
  ok((await direct.resource(configMapResource).list()).metadata.resourceVersion)
  await direct.close()

  const other = await issueClientCertificate(join(dataDir, 'pki'), { ...user, name: 'bob' }, Date.now())
  const plugin = join(dataDir, 'plugin.sh')
  const credential = (pair: { certificate: string; key: string }, seconds: number) =>
    JSON.stringify({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: {
        clientCertificateData: pair.certificate,
        clientKeyData: pair.key,
        expirationTimestamp: new Date(Date.now() + seconds * 1_000).toISOString(),
      },
    })
  writeFileSync(join(dataDir, 'cert-1'), credential({ certificate, key }, 1))
  writeFileSync(join(dataDir, 'cert-2'), credential(other, 3_600))
  writeFileSync(plugin, 'cd "$(dirname "$0")"; if [ -e ran ]; then cat cert-2; else touch ran; cat cert-1; fi')
  const kubeconfig = join(dataDir, 'exec-kubeconfig')
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'sh', args: [plugin], interactiveMode: 'Never' }
  const cluster = { server: server.url, 'certificate-authority-data': Buffer.from(server.caCertificate).toString('base64') }
  const config = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { exec } }],
  }
  writeFileSync(kubeconfig, JSON.stringify(config))
  const viaPlugin = await createClient({ kubeconfig })
  const whoAmI = async () => {
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const response = await viaPlugin.request({ method: 'POST', path: '/apis/authentication.k8s.io/v1/selfsubjectreviews', body: review })
    return ((await response.json()) as { status: { userInfo: { username: string } } }).status.userInfo.username
  }
  equal(await whoAmI(), 'ann')
  await eventually(async () => (await whoAmI()) === 'bob', 'requests with the second certificate, over new connections')
  await viaPlugin.close()
})
