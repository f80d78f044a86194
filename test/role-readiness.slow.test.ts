/** What roles report about themselves while they cannot work: wrong or rejected credentials, pools that are not theirs, another leader. */
import { equal, match } from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Agent, fetch } from 'undici'
import { workerPoolResource } from '../src/api/index.ts'
import { servingSecretName } from '../src/app/external-metrics/names.ts'
import { applyObjects, externalMetricsManifests } from '../src/app/manifests/index.ts'
import { type Client, secretResource, serviceAccountResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { accountKubeconfig, controllerArgs, type RoleProcess, RoleProcesses, startApiRole } from './support/role-process.ts'
import { runOarlock } from './support/run-program.ts'

const base = makeDataDir()
const roles = new RoleProcesses(base)
const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
let client: Client
let ca: string

before(async () => {
  ;({ client, ca } = await startApiRole(roles))
})
after(async () => {
  await dispatcher.close()
  await client?.close()
  await roles.stopAll()
  removeDirectory(base)
})

const kubeconfigFile = async (name: string, account: string) => roles.file(name, 'kubeconfig', await accountKubeconfig(client, account, ca))
const start = async (name: string, account: string, ready: RegExp, ...args: string[]) =>
  await roles.start(name, [...args, '--kubeconfig', await kubeconfigFile(name, account), '--data', '.'], ready)
const readyz = async (url: string) => {
  const response = await fetch(`${url}/readyz`, { dispatcher })
  return { status: response.status, text: await response.text() }
}

test('a role ends with code 4 and names the permissions that its user lacks, or that its token is rejected', async () => {
  for (const [role, account, missing] of [
    // On the embedded server the stores may write the Secrets of outputs, in any namespace.
    ['pool', 'oarlock-stores', /no permission to watch workerpools, patch workers\/status, get leases in oarlock-system/],
    [
      'join-service',
      'oarlock-pool',
      /no permission to watch runs, create tokenreviews, .*patch configmaps oarlock-endpoint-join in oarlock-system and \d more/,
    ],
    ['stores', 'oarlock-join-service', /no permission to .*patch configmaps oarlock-endpoint-stores in oarlock-system/],
    ['controller', 'oarlock-pool', /no permission to delete stacks, .* and \d+ more$/m],
  ] as const) {
    const file = await kubeconfigFile(`${role}-of-${account}`, account)
    const { code, stdout, stderr } = await runOarlock([role, '--kubeconfig', file, '--data', join(base, `wrong-${role}`)])
    equal(code, 4, stderr)
    match(stderr, missing)
    match(stderr, new RegExp(`hint: use the ServiceAccount oarlock-${role}`))
    equal(stdout, '')
  }
  const rejected = (await accountKubeconfig(client, 'oarlock-stores', ca)).replace(/"token":"[^"]+"/, '"token":"wrong"')
  const file = roles.file('rejected', 'kubeconfig', rejected)
  const { code, stdout, stderr } = await runOarlock(['stores', '--kubeconfig', file, '--data', join(base, 'rejected-stores')])
  equal(code, 4, stderr)
  match(stderr, /the server rejected the credentials/)
  equal(stdout, '')
})

test('a controller reports that it leads, and another one which process leads', async () => {
  const leader = await start('controller', 'oarlock-controller', /^ready: this process leads$/m, ...controllerArgs)
  const standby = await start('standby', 'oarlock-controller', /^ready: waiting for leadership, \S+ leads$/m, ...controllerArgs)
  match(standby.output(), new RegExp(`${leader.printed('identity')} leads`))
  equal((await readyz(standby.printed('health'))).status, 200)
  equal(await leader.stop(), 0)
  await eventually(() => /^leading: /m.test(standby.output()), 'the other controller to lead', 30_000)
  equal(await standby.stop(), 0)
})

test('a controller that serves external metrics writes the Secret of their certificate with the rights of its ServiceAccount', async () => {
  const secret = { name: servingSecretName, namespace: 'oarlock-system' }
  // This server aggregates no API.
  await applyObjects(
    client,
    externalMetricsManifests.filter(({ kind }) => kind.includes('Role')),
  )
  const args = ['--external-metrics', '127.0.0.1:0']
  const controller = await start('metrics', 'oarlock-controller', /^ *health +http/m, ...controllerArgs, ...args)
  const read = async () => await client.resource(secretResource).getOrUndefined(secret.name, { namespace: secret.namespace })
  const { data } = (await eventually(read, found => found?.data?.['tls.crt'] !== undefined))!
  // It is written again when it is no longer of use.
  await client
    .resource(secretResource)
    .patch(secret.name, { data: { 'tls.crt': 'Z2FyYmFnZQ==' } }, { type: 'merge', namespace: secret.namespace })
  await eventually(read, found => ![data?.['tls.crt'], 'Z2FyYmFnZQ=='].includes(found?.data?.['tls.crt']))
  equal(await controller.stop(), 0)
})

const healthUrl = (pool: RoleProcess) => /health is served at (\S+)/.exec(pool.output())?.[1] ?? ''
const poolArgs = ['pool', '--health-address', '127.0.0.1:0']

test('a pool process is not ready while a pool does not exist or is not of mode Process', async () => {
  const pools = client.resource(workerPoolResource)
  await pools.create({ metadata: { name: 'edge' }, spec: { mode: 'External' } })
  const args = [...poolArgs, '--pool', 'nope', '--pool', 'edge']
  const pool = await start('pool', 'oarlock-pool', /^waiting: /m, ...args)
  const expected = 'WorkerPool "nope" does not exist; WorkerPool "edge" has mode External: start its workers with "oarlock worker"'
  match(pool.output(), new RegExp(`^waiting: ${expected}$`, 'm'))
  const { status, text } = await readyz(healthUrl(pool))
  equal(status, 503)
  // Anybody may read it.
  equal(text, '2 of 2 WorkerPools cannot be served: the output of "oarlock pool" names them\n')
  await pools.create({ metadata: { name: 'nope' }, spec: { mode: 'Process' } })
  await pools.delete('edge')
  await pools.create({ metadata: { name: 'edge' }, spec: { mode: 'Process' } })
  await eventually(() => /^ready: claiming requests of pools nope, edge$/m.test(pool.output()), 'the pool to be ready')
  equal((await readyz(healthUrl(pool))).status, 200)
  await pools.delete('edge')
  await eventually(async () => (await readyz(healthUrl(pool))).status === 503, 'the pool not to be ready')
  match(pool.output(), /"reasons":"WorkerPool \\"edge\\" does not exist"/)
  equal(await pool.stop(), 0)
})

test('a pool process whose health address is in use ends with code 8', async () => {
  const [, port] = /:(\d+)$/.exec(client.server) ?? []
  const file = await kubeconfigFile('pool-port', 'oarlock-pool')
  const args = ['pool', '--kubeconfig', file, '--data', join(base, 'pool-port-data'), '--health-address', `127.0.0.1:${port}`]
  const { code, stderr } = await runOarlock(args)
  equal(code, 8, stderr)
  match(stderr, new RegExp(`127.0.0.1:${port}, the address of the health endpoints, is in use`))
})

test('a role whose credential is revoked is not ready, and names the reason without the text of the error', async () => {
  const started = {
    'oarlock-stores': await start('stores', 'oarlock-stores', /^ready: /m, 'stores', '--listen', '127.0.0.1:0'),
    'oarlock-join-service': await start('join', 'oarlock-join-service', /^ready: /m, 'join-service', '--listen', '127.0.0.1:0'),
    'oarlock-controller': await start('revoked', 'oarlock-controller', /^ready: /m, ...controllerArgs),
    'oarlock-pool': await start('revoked-pool', 'oarlock-pool', /^ready: /m, ...poolArgs),
  }
  const urls = {
    'oarlock-stores': started['oarlock-stores'].printed('stores'),
    'oarlock-join-service': started['oarlock-join-service'].printed('join'),
    'oarlock-controller': started['oarlock-controller'].printed('health'),
    'oarlock-pool': healthUrl(started['oarlock-pool']),
  }
  for (const [account, url] of Object.entries(urls)) {
    equal((await readyz(url)).status, 200, account)
    await client.resource(serviceAccountResource).delete(account, { namespace: 'oarlock-system' })
    const { text } = await eventually(
      async () => await readyz(url),
      ({ status }) => status === 503,
      60_000,
    )
    match(text, /^(.+ \(Unauthorized\)\n)+$/, account)
  }
})
