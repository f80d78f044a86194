/** The chart on a real cluster: a Run in a worker Pod, whose program attacks with the token that the kubelet has given to its worker. */
import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { InstalledChart, installedChartMissing } from './cluster/installed-chart.ts'

const skip = installedChartMissing() ?? false

/** Runs in the Pod. Writes what each request is answered with to the outputs of the Stack. */
function attack(): void {
  const { readFileSync, writeFileSync } = process.getBuiltinModule('node:fs')
  const { request } = process.getBuiltinModule('node:https')
  const { hostname } = process.getBuiltinModule('node:os')
  const token = readFileSync('/var/run/secrets/oarlock.dev/worker/token', 'utf8').trim()
  const worker = hostname()
  const own = '/apis/oarlock.dev/v1alpha1'
  const core = '/api/v1/namespaces'
  const pod = {
    metadata: { name: 'p' },
    spec: { serviceAccountName: 'oarlock-controller', containers: [{ name: 'a', image: 'a' }] },
  }
  const attempts: [string, string, string, object?][] = [
    ['own status', 'PATCH', `${own}/workers/${worker}/status?dryRun=All`, { status: { phase: 'Busy' } }],
    ['own trust domain', 'PATCH', `${own}/workers/${worker}?dryRun=All`, { spec: { trustDomain: 'shop' } }],
    ['own labels', 'PATCH', `${own}/workers/${worker}?dryRun=All`, { metadata: { labels: { gpu: 'yes' } } }],
    ['own pool', 'PATCH', `${own}/workers/${worker}?dryRun=All`, { spec: { pool: 'other' } }],
    ['own Run', 'PATCH', `${own}/namespaces/shop/runs/RUN?dryRun=All`, { spec: { cancel: true } }],
    ['Secrets of Stacks', 'GET', `${core}/shop/secrets`],
    ['a Secret of the Stack', 'GET', `${core}/shop/secrets/login`],
    ['Secrets of the system', 'GET', `${core}/oarlock-system/secrets`],
    ['a Pod of a component', 'POST', `${core}/oarlock-system/pods?dryRun=All`, pod],
    ['a token of a component', 'POST', `${core}/oarlock-system/serviceaccounts/oarlock-controller/token`, { spec: {} }],
    ['Lease of the stores', 'PATCH', '/apis/coordination.k8s.io/v1/namespaces/oarlock-system/leases/oarlock-stores', { spec: {} }],
    ['address of the stores', 'PATCH', `${core}/oarlock-system/configmaps/oarlock-endpoint-stores`, { data: { url: 'https://evil' } }],
  ]
  const send = (method: string, path: string, body?: object) =>
    new Promise<number>((resolve, reject) => {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': type }) }
      const { KUBERNETES_SERVICE_HOST: host = 'kubernetes.default.svc' } = process.env
      const sent = request({ host, port: 443, method, path, headers, rejectUnauthorized: false }, response => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
      sent.on('error', reject)
      sent.end(body && JSON.stringify(body))
    })
  const sendAll = async () => {
    const codes: Record<string, number> = {}
    for (const [what, method, path, body] of attempts) codes[what] = await send(method, path, body)
    const outputs = { codes, password: process.env.password === 'of-web' }
    writeFileSync(process.env.OARLOCK_OUTPUTS ?? '', JSON.stringify(outputs))
  }
  void sendAll()
}

test('a worker Pod of the chart executes a Run with its own token, which gives a program in it nothing else', {
  skip,
  timeout: 1_500_000,
}, async () => {
  const installed = await InstalledChart.start({ pools: { default: { spec: { lifecycle: 'OneShot', min: 0, max: 2 } } } })
  try {
    const { kubectl, apply } = { kubectl: installed.kubectl.bind(installed), apply: installed.apply.bind(installed) }
    const login = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'login', namespace: 'shop' }, stringData: { password: 'of-web' } }
    const spec = {
      engine: 'command',
      source: { inline: { files: { 'attack.js': `(${attack})()` } } },
      command: { apply: ['node', 'attack.js'] },
      isolation: { level: 'Pod' },
      env: [{ name: 'password', secretKeyRef: { name: 'login', key: 'password' } }],
    }
    await apply(login, { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Stack', metadata: { name: 'web', namespace: 'shop' }, spec })
    try {
      await kubectl('wait', '--for=condition=Ready', 'stack/web', '-n', 'shop', '--timeout=400s')
    } catch (error) {
      const state = await kubectl('get', 'stacks,runs,workers,pods', '-A', '-o', 'wide')
      const logs = await kubectl('logs', '-n', 'oarlock-system', '-l', 'app.kubernetes.io/component=worker', '--tail=30').catch(String)
      const controllers = await kubectl('logs', '-n', 'oarlock-system', '-l', 'app.kubernetes.io/component=controller', '--tail=30')
      throw new Error(`${state}\n${logs}\n${controllers}`, { cause: error })
    }
    const output = async (name: string) => {
      const text = await kubectl('get', 'secret', 'web-outputs', '-n', 'shop', '-o', `jsonpath={.data.${name}}`)
      return JSON.parse(Buffer.from(text, 'base64').toString())
    }
    equal(await output('password'), true)
    const { 'own status': ownStatus, ...others } = (await output('codes')) as Record<string, number>
    equal(ownStatus, 200)
    deepEqual([...new Set(Object.values(others))], [403], JSON.stringify(others))
    const secrets = await kubectl('get', 'secrets', '-A', '-o', 'jsonpath={range .items[*]}{.type}{"\\n"}{end}')
    equal(secrets.includes('oarlock.dev/worker'), false, secrets)
  } finally {
    await installed.close()
  }
})
