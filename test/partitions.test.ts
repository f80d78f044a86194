/** Partitions and a gateway as users start them: each a process of `oarlock`, with what the commands have written. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Installation } from '../examples/partitions/installation.ts'
import { tenantResource } from '../src/api/index.ts'
import { type Client, type ClientOptions, configMapResource, createClient, namespaceResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { freePorts } from './support/free-ports.ts'

describe('partitions behind a gateway', { timeout: 180_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-partitions-'))
  let installation: Installation
  let client: Client
  before(async () => {
    const [gatewayPort = 0] = await freePorts(1)
    installation = await Installation.start({ directory, tenantPartitions: ['t1', 't2'], resourcePartitions: ['r1'], gatewayPort })
    client = await createClient({ kubeconfig: installation.kubeconfig })
    for (const [name, partition] of [
      ['acme', 't1'],
      ['umbrella', 't2'],
    ] as const) {
      await client.resource(tenantResource).create({ metadata: { name, labels: { 'oarlock.dev/partition': partition } }, spec: {} })
      // The gateway follows home by a watch.
      await eventually(() => namespaceOf(name, name), `namespace ${name}`)
    }
  })
  after(async () => {
    for (const each of [client, ...clients]) await each?.close()
    await installation?.stop()
    rmSync(directory, { recursive: true, force: true })
  })
  const namespaceOf = async (name: string, tenant: string) =>
    await client
      .resource(namespaceResource)
      .create({ metadata: { name, labels: { 'oarlock.dev/tenant': tenant } } })
      .catch(error => (/which does not exist or has no partition/.test(String(error)) ? undefined : Promise.reject(error)))
  const clients: Client[] = []
  const connect = async (options: ClientOptions) => {
    const connected = await createClient(options)
    clients.push(connected)
    return connected
  }
  const direct = (name: string) => connect({ kubeconfig: installation.partitionKubeconfig(name) })
  const configMaps = () => client.resource(configMapResource)

  test('each namespace is in the partition of its Tenant, and lists have all of them', async () => {
    for (const [namespace, partition, other] of [
      ['acme', 't1', 't2'],
      ['umbrella', 't2', 't1'],
    ] as const) {
      await configMaps().create({ metadata: { namespace, name: 'where' }, data: { partition } })
      const own = await direct(partition)
      equal((await own.resource(configMapResource).get('where', { namespace })).data?.partition, partition)
      const elsewhere = await direct(other)
      equal(await elsewhere.resource(namespaceResource).getOrUndefined(namespace), undefined)
    }
    const { items } = await configMaps().listAll({})
    deepEqual(
      items
        .filter(({ metadata }) => metadata.name === 'where')
        .map(({ data }) => data?.partition)
        .sort(),
      ['t1', 't2'],
    )
  })

  test('a ServiceAccount of a tenant partition authenticates at the gateway, with the rights that it has there', async () => {
    const path = '/api/v1/namespaces/acme/serviceaccounts/default/token'
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const response = await client.request({ method: 'POST', path, body: request })
    const { status } = (await response.json()) as { status: { token: string } }
    const { server } = client
    const caCertificate = readFileSync(join(directory, 'home', 'pki', 'ca.crt'), 'utf8')
    const account = await connect({ cluster: { server, caCertificate, token: status.token } })
    const denied = account.resource(configMapResource).get('where', { namespace: 'acme' })
    match(String(await denied.catch(error => error)), /User "system:serviceaccount:acme:default" cannot get resource "configmaps"/)
    const unauthenticated = await connect({ cluster: { server, caCertificate, token: `${status.token}x` } })
    match(
      String(
        await unauthenticated
          .resource(configMapResource)
          .get('where', { namespace: 'acme' })
          .catch(error => error),
      ),
      /Unauthorized/,
    )
  })

  test('with home killed, partitions and the gateway serve what they have, and new names wait with a reason', async () => {
    const home = installation.role('home')
    await home.end('SIGKILL')
    await configMaps().create({ metadata: { namespace: 'acme', name: 'meanwhile' } })
    equal(
      (await configMaps().list({ namespace: 'umbrella' })).items.some(({ metadata }) => metadata.name === 'where'),
      true,
    )
    const hasty = await connect({ kubeconfig: installation.kubeconfig, requestTimeoutMs: 5_000 })
    const created = hasty.request({
      method: 'POST',
      path: '/api/v1/namespaces',
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'late', labels: { 'oarlock.dev/tenant': 'acme' } } },
      signal: AbortSignal.timeout(5_000),
    })
    match(String(await created.catch(error => error)), /home|TimeoutError|does not answer/)
    const listed = hasty.request({ method: 'GET', path: '/api/v1/configmaps', signal: AbortSignal.timeout(3_000) })
    match(String(await listed.catch(error => error)), /partition "home" does not answer|TimeoutError/)

    home.restart()
    await home.until(/^ready: /m)
    await eventually(async () => await namespaceOf('late', 'acme').catch(() => undefined), 'a namespace after the return of home', 30_000)
    await eventually(
      async () =>
        (
          await configMaps()
            .listAll({})
            .catch(() => undefined)
        )?.items.length,
      'a list of all partitions',
      30_000,
    )
  })

  test('a gateway that was killed and a partition with another address continue without a change of any configuration', async () => {
    const gateway = installation.role('gateway')
    await gateway.end('SIGKILL')
    const t1 = installation.role('t1')
    const before = t1.printed('API')
    await t1.end()
    // Its old port is taken.
    const taken = createServer().listen(Number(new URL(before).port), '127.0.0.1')
    t1.restart()
    await t1.until(/^ready: /m)
    taken.close()
    gateway.restart()
    await gateway.until(/^ready: /m)
    equal(before === t1.printed('API'), false)
    const found = await eventually(
      async () =>
        await configMaps()
          .getOrUndefined('where', { namespace: 'acme' })
          .catch(() => undefined),
      'the new address',
    )
    equal(found.data?.partition, 't1')
  })

  test('a data directory of a partition starts as nothing else', async () => {
    const failure = async (...args: string[]) =>
      await installation.run(...args).then(
        () => '',
        error => String(error.stderr),
      )
    match(
      await failure('serve', '--data', 't1', '--listen', '127.0.0.1:0'),
      /is that of partition "t1" \(number 1\)\n {2}hint: start it with "oarlock serve --partition/,
    )
    match(
      await failure('up', '--data', 'home', '--listen', '127.0.0.1:0', '--health-address', '127.0.0.1:0'),
      /hint: start it with "oarlock serve --home"/,
    )
    match(
      await failure('serve', '--partition', 't2.partition.json', '--data', 't1'),
      /is that of partition "t1" \(number 1\), and not of partition "t2" \(number 2\)/,
    )
    match(await failure('gateway', '--config', 't1.partition.json'), /t1.partition.json is no GatewayConfiguration/)
    writeFileSync(join(directory, 'broken.json'), '{')
    match(await failure('gateway', '--config', 'broken.json'), /broken.json cannot be read as JSON/)
    match(await failure('partition', 'add', 'Bad_Name', '--data', 'home'), /invalid name of a partition "Bad_Name"/)
    match(await failure('partition', 'add', 'x', '--data', 't1'), /is not the data directory of the home partition/)
  })
})
