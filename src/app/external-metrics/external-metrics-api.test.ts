/** The API of a controller process, with the certificates and headers that kube-apiserver sends. test/autoscaling.slow.test.ts has a real one. */
import { deepEqual, equal, match, notEqual } from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { CertificateAuthority, type KeyPair } from '../../../test/cluster/certificates.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { systemNamespace, workerPoolResource } from '../../api/index.ts'
import { type CrdBody, configMapResource, crdResource, namespaceResource, secretResource } from '../../kubernetes/client/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { startTestServer, type TestServer } from '../../kubernetes/testing/index.ts'
import { type ControllerProcess, startControllerProcess } from '../controllers/controller-process.ts'
import { apiServiceResource } from './ca-bundle.ts'
import { apiServiceName, servingSecretName } from './names.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-external-metrics-'))
const frontProxyCa = new CertificateAuthority(directory, 'front-proxy-ca')
const otherCa = new CertificateAuthority(directory, 'other-ca')
const frontProxy = frontProxyCa.issue('front-proxy', '/CN=front-proxy-client')
const otherName = frontProxyCa.issue('other-name', '/CN=kubelet')
const otherIssuer = otherCa.issue('other-issuer', '/CN=front-proxy-client')
const group = '/apis/external.metrics.k8s.io/v1beta1'
const queued = `${group}/namespaces/default/oarlock_runs_queued?labelSelector=pool%3Dedge`
const admin = { 'X-Remote-User': 'hpa', 'X-Remote-Group': 'system:masters' }

let api: TestServer
let controller: ControllerProcess

const settings = (ca: CertificateAuthority) => ({
  'requestheader-client-ca-file': readFileSync(ca.certFile, 'utf8'),
  'requestheader-allowed-names': '["front-proxy-client"]',
  'requestheader-username-headers': '["X-Remote-User"]',
  'requestheader-group-headers': '["X-Remote-Group"]',
  'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
})
const secrets = () => api.client.resource(secretResource)
const servingSecret = async () => await secrets().get(servingSecretName, { namespace: systemNamespace })
const caOf = async () => Buffer.from((await servingSecret()).data?.['ca.crt'] ?? '', 'base64').toString()

type Sent = { as?: KeyPair | undefined; headers?: Record<string, string>; method?: string; ca?: string }
async function send(path: string, { as, headers = {}, method = 'GET', ca }: Sent = {}) {
  const client = as && { cert: readFileSync(as.certFile), key: readFileSync(as.keyFile) }
  const trusted = ca ?? (await caOf())
  const url = `${controller.externalMetricsUrl()}${path}`
  const servername = 'oarlock-external-metrics.oarlock-system.svc'
  const sent = request(url, { ...client, ca: trusted, servername, headers, method, agent: false }).end()
  const [response] = await once(sent, 'response')
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString()
  return { code: response.statusCode as number, text, body: text.startsWith('{') ? JSON.parse(text) : undefined }
}
const asAdmin = async (path: string) => await send(path, { as: frontProxy, headers: admin })

before(async () => {
  api = await startTestServer()
  const { client } = api
  await client.resource(namespaceResource).apply({ metadata: { name: 'kube-system' } }, { force: true })
  await client.resource(crdResource).create({
    metadata: {
      name: 'apiservices.apiregistration.k8s.io',
      annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes' },
    },
    spec: {
      group: 'apiregistration.k8s.io',
      scope: 'Cluster',
      names: { plural: 'apiservices', singular: 'apiservice', kind: 'APIService', listKind: 'APIServiceList' },
      versions: [
        {
          ...{ name: 'v1', served: true, storage: true },
          schema: {
            openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } } },
          },
        },
      ],
    },
  } as { metadata: { name: string } } & CrdBody)
  await eventually(async () => {
    const spec = { service: { namespace: 'keda', name: 'keda-operator-metrics-apiserver' } }
    return await client
      .resource(apiServiceResource)
      .create({ metadata: { name: apiServiceName }, spec })
      .then(Boolean, () => false)
  }, 'the kind APIService to be served')
  const address = { host: '127.0.0.1', port: 0 }
  mkdirSync(join(directory, 'data'))
  controller = await startControllerProcess({
    ...{ client, access: {}, cacheDir: join(directory, 'cache'), allowPaths: [], healthAddress: address, crds: 'install', version: 'test' },
    queue: { dataDir: join(directory, 'data'), listen: address, names: [] },
    externalMetrics: { listen: address, certificate: 'Own' },
    log: silentLog,
  })
  await controller.whenLeader
  await eventually(() => controller.externalMetricsUrl() !== undefined, 'external metrics to be served')
  await client
    .resource(workerPoolResource)
    .create({ metadata: { name: 'edge', labels: { team: 'a' } }, spec: { mode: 'External', max: 50 } })
})
after(async () => {
  await controller?.stop({ graceMs: 5_000 })
  await api?.[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true, force: true })
})

test('nothing is authenticated by headers before the front proxy CA is known, which is why the process is not ready', async () => {
  match(controller.notReady().join(), /requestheader CA/)
  equal((await asAdmin(group)).code, 401)
  await api.client
    .resource(configMapResource)
    .create({ metadata: { name: 'extension-apiserver-authentication', namespace: 'kube-system' }, data: settings(frontProxyCa) })
  await eventually(() => controller.notReady().length === 0, 'the process to be ready')
  equal((await asAdmin(group)).code, 200)
})

test('the value of a pool is that of its status, for a user who may list the metric', async () => {
  const { body } = await eventually(
    async () => await asAdmin(queued),
    ({ code }) => code === 200,
  )
  const [value] = body.items
  match(value.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  deepEqual(body, {
    kind: 'ExternalMetricValueList',
    apiVersion: 'external.metrics.k8s.io/v1beta1',
    metadata: {},
    items: [
      {
        metricName: 'oarlock_runs_queued',
        metricLabels: { team: 'a', pool: 'edge', mode: 'External' },
        timestamp: value.timestamp,
        value: '0',
      },
    ],
  })
})

test('a user without the permission can discover the API, and gets 403 for a metric', async () => {
  const bob = { as: frontProxy, headers: { 'X-Remote-User': 'bob', 'X-Remote-Group': 'system:authenticated' } }
  for (const path of ['/apis', '/apis/external.metrics.k8s.io', group, `${group}/`, '/openapi/v2', '/openapi/v3'])
    equal((await send(path, bob)).code, 200, path)
  const { code, body } = await send(queued, bob)
  equal(code, 403)
  match(body.message, /^oarlock_runs_queued.external.metrics.k8s.io is forbidden: User "bob" cannot list .* in the namespace "default"$/)
})

for (const [name, path, sent, code, message] of [
  ['an unknown metric', `${group}/namespaces/default/queue`, {}, 404, /metric "queue" of external.metrics.k8s.io not found: use /],
  ['an unknown pool', queued.replace('edge', 'egde'), {}, 404, /no WorkerPool matches the selector.* default, edge$/],
  ['a malformed selector', queued.replace('edge', '%28'), {}, 400, /unable to parse requirement/],
  ['another path', `${group}/nodes`, {}, 404, /NAMESPACE\/METRIC$/],
  ['a write', queued, { method: 'DELETE' }, 405, /use GET/],
] as const)
  test(`rejects ${name}`, async () => {
    const response = await send(path, { as: frontProxy, headers: admin, ...sent })
    equal(response.code, code)
    match(response.body.message, message)
  })

for (const [name, as, headers] of [
  ['no certificate', undefined, admin],
  ['a certificate of another authority', otherIssuer, admin],
  ['a certificate with a name that is not allowed', otherName, admin],
  ['a certificate and no user', frontProxy, { 'X-Remote-Group': 'system:masters' }],
  ['an invalid token', undefined, { Authorization: 'Bearer x' }],
] as const)
  test(`rejects a request with ${name}, also for discovery`, async () => {
    for (const path of [queued, group, '/apis', '/openapi/v3']) equal((await send(path, { as, headers })).code, 401, path)
  })

test('a bearer token is reviewed, and headers without a certificate do not change its user', async () => {
  const path = '/api/v1/namespaces/oarlock-system/serviceaccounts/oarlock-pool/token'
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  const { status } = (await (await api.client.request({ method: 'POST', path, body })).json()) as { status: { token: string } }
  const withToken = (token: string) => ({ headers: { ...admin, Authorization: `Bearer ${token}` } })
  match((await send(queued, withToken(status.token))).body.message, /User "system:serviceaccount:oarlock-system:oarlock-pool" cannot list/)
  equal((await send(queued, withToken(api.server.adminToken))).code, 200)
})

test('the APIService of another adapter is not changed, and that of Oarlock trusts the certificate, also after both were replaced', async () => {
  const apiServices = api.client.resource(apiServiceResource)
  const caBundle = async () => Buffer.from((await apiServices.get(apiServiceName)).spec.caBundle ?? '', 'base64').toString()
  equal(await caBundle(), '')
  await apiServices.delete(apiServiceName)
  const spec = { service: { namespace: systemNamespace, name: 'oarlock-external-metrics' } }
  await apiServices.create({ metadata: { name: apiServiceName }, spec })
  const ca = await caOf()
  await eventually(async () => (await caBundle()) === ca, 'the CA to be written')
  await apiServices.patch(apiServiceName, { spec: { caBundle: '' } } as object, { type: 'merge' })
  await eventually(async () => (await caBundle()) === ca, 'the CA to be written again')
  await secrets().delete(servingSecretName, { namespace: systemNamespace })
  const trusted = await eventually(caBundle, each => each !== '' && each !== ca)
  notEqual(trusted, ca)
  await eventually(async () => (await send(queued, { as: frontProxy, headers: admin, ca: trusted })).code === 200, 'the new certificate')
})

test('a renewal that fails once does not make the process not ready, because a valid certificate is served', async () => {
  // The working directory of a renewal, which cannot be created: the failed one removes the file.
  const obstacle = join(directory, 'data', 'external-metrics')
  writeFileSync(obstacle, '')
  await secrets().patch(servingSecretName, { metadata: { annotations: { changed: 'true' } } } as object, {
    type: 'merge',
    namespace: systemNamespace,
  })
  await eventually(() => !existsSync(obstacle), 'the renewal to fail')
  await new Promise(resolve => setImmediate(resolve))
  deepEqual(controller.notReady(), [])
})

test('after the front proxy CA was replaced, certificates of the one before are rejected', async () => {
  const patch = { data: settings(otherCa) }
  await api.client
    .resource(configMapResource)
    .patch('extension-apiserver-authentication', patch, { type: 'merge', namespace: 'kube-system' })
  await eventually(async () => (await send(group, { as: otherIssuer, headers: admin })).code === 200, 'the new one to be accepted')
  equal((await asAdmin(group)).code, 401)
})
