/** Partitions and a gateway as users start them: each a process of `oarlock`, with what the commands have written. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect as connectTo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Installation } from '../examples/partitions/installation.ts'
import { type Client, type ClientOptions, configMapResource, createClient, namespaceResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { untilKindsMatch } from './support/gateway/until-kinds-match.ts'
import { PartitionsFixture } from './support/partitions-fixture.ts'

describe('partitions behind a gateway', { timeout: 180_000 }, () => {
  const fixture = new PartitionsFixture()
  const { directory } = fixture
  let installation: Installation
  let client: Client
  before(async () => {
    ;({ installation, client } = await fixture.start({
      tenantPartitions: ['t1', 't2'],
      resourcePartitions: ['r1'],
      tenants: { acme: 't1', umbrella: 't2' },
    }))
    await untilKindsMatch(await direct('home'), 't1')
  })
  after(async () => {
    for (const each of clients) await each.close()
    await fixture.stop()
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
    const rejection = async (token: string) => {
      const account = await connect({ cluster: { server, caCertificate, token } })
      const read = account.resource(configMapResource).get('where', { namespace: 'acme' })
      return String(await read.catch(error => error))
    }
    match(await rejection(status.token), /User "system:serviceaccount:acme:default" cannot get resource "configmaps"/)
    match(await rejection(`${status.token}x`), /Unauthorized/)
    const claims = Buffer.from(JSON.stringify({ sub: 'system:serviceaccount:missing:default' })).toString('base64url')
    match(await rejection(`e30.${claims}.x`), /Unauthorized/)
  })

  test('a token of home is valid at a partition, and for at most ten seconds after its end', async () => {
    const account = '/api/v1/namespaces/default/serviceaccounts'
    await client.request({ method: 'POST', path: account, body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'short' } } })
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const response = await client.request({ method: 'POST', path: `${account}/short/token`, body })
    const { token } = ((await response.json()) as { status: { token: string } }).status
    const { server } = await direct('t1')
    const user = await connect({
      cluster: { server, caCertificate: readFileSync(join(directory, 'home', 'pki', 'ca.crt'), 'utf8'), token },
    })
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const isValid = async () =>
      await user.request({ method: 'POST', path, body: review }).then(
        () => true,
        error => {
          equal(error.code, 401, String(error))
          return false
        },
      )
    equal(await isValid(), true)
    await client.request({ method: 'DELETE', path: `${account}/short` })
    // Used again shortly before the review ends: the next one is at home, and not from a cache.
    await sleep(9_000)
    await isValid()
    await sleep(1_500)
    equal(await isValid(), false)
  })

  describe('a user who may create Namespaces of one Tenant', () => {
    let token: string
    before(async () => {
      await client.request({
        ...{ method: 'POST', path: '/apis/rbac.authorization.k8s.io/v1/clusterroles' },
        body: {
          ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'creator' } },
          rules: [
            { apiGroups: [''], resources: ['namespaces'], verbs: ['create', 'get', 'patch'] },
            { apiGroups: ['oarlock.dev'], resources: ['tenants'], resourceNames: ['umbrella'], verbs: ['use'] },
          ],
        },
      })
      await client.request({
        ...{ method: 'POST', path: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings' },
        body: {
          ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', metadata: { name: 'creator' } },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'creator' },
          subjects: [{ kind: 'ServiceAccount', name: 'default', namespace: 'umbrella' }],
        },
      })
      const path = '/api/v1/namespaces/umbrella/serviceaccounts/default/token'
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
      token = ((await (await client.request({ method: 'POST', path, body })).json()) as { status: { token: string } }).status.token
    })
    const at = async (server: string) => {
      const caCertificate = readFileSync(join(directory, 'home', 'pki', 'ca.crt'), 'utf8')
      return await connect({ cluster: { server, caCertificate, token } })
    }
    const failure = (sent: Promise<unknown>) =>
      sent.then(
        () => 'no error',
        error => String(error),
      )
    const named = (name: string, tenant: string) => ({ metadata: { name, labels: { 'oarlock.dev/tenant': tenant } } })

    test('gets none of another Tenant, neither through the gateway nor in a partition, and cannot change the Tenant of one', async () => {
      const gateway = await at(client.server)
      const partition = await at(installation.role('t2').printed('API'))
      const created = async () => await gateway.resource(namespaceResource).create(named('umbrella-2', 'umbrella'))
      // The role is copied to the partition by a watch.
      await eventually(async () => await created().catch(() => undefined), 'a namespace of the own Tenant')
      const denied = /you may not use/
      match(await failure(gateway.resource(namespaceResource).create(named('taken', 'acme'))), denied)
      match(await failure(partition.resource(namespaceResource).create(named('taken', 'acme'))), denied)
      for (const each of [gateway, partition]) {
        const change = { metadata: { labels: { 'oarlock.dev/tenant': 'acme' } } } as object
        match(await failure(each.resource(namespaceResource).patch('umbrella-2', change, { type: 'merge' })), denied)
      }
      // Without the right to use its Tenant a Namespace cannot be taken out of it either.
      const removal = { metadata: { labels: { 'oarlock.dev/tenant': null } } } as object
      const removed = () => failure(gateway.resource(namespaceResource).patch('acme', removal, { type: 'merge' }))
      // It is in the other partition, to which the role is copied independently.
      match(await eventually(removed, text => !/cannot patch resource/.test(text)), denied)
    })

    test('gets nothing from the paths between gateways and partitions', async () => {
      const gateway = await at(client.server)
      for (const path of ['/partition/progress', '/partition/kubelet?node=a'])
        match(await failure(gateway.request({ method: 'GET', path })), /this server is a gateway, and serves no requests between/)
      const body = { checks: [{ user: { name: 'ann', groups: ['system:masters'] }, url: '/api/v1/secrets' }] }
      match(await failure(gateway.request({ method: 'POST', path: '/partition/rights', body })), /this server is a gateway/)
    })
  })

  test('connections without a credential do not close those of users', async () => {
    const args = [process.execPath, join(import.meta.dirname, '..', 'bin', 'oarlock.js'), 'gateway', '--config', 'gateway.json']
    // With so few files, 28 connections without a credential.
    const shell = ['-c', 'ulimit -n 256 && exec "$@"', 'sh', ...args, '--listen', '127.0.0.1:0']
    const gateway = spawn('sh', shell, { cwd: directory, stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, NO_COLOR: '1' } })
    const sockets: Socket[] = []
    try {
      let output = ''
      gateway.stdout.on('data', text => {
        output += text
      })
      await eventually(() => /^ready: /m.test(output), 'the gateway to be ready', 30_000)
      const server = /https:\/\/\S+:[0-9]+/.exec(output)?.[0] ?? ''
      const user = await connect({
        kubeconfig: installation.kubeconfig,
        endpoint: { server, caCertificate: readFileSync(join(directory, 'home', 'pki', 'ca.crt'), 'utf8') },
      })
      const path = '/api/v1/namespaces/acme/configmaps?watch=true'
      const watch = await user.stream({ method: 'GET', path, idleTimeoutMs: 0 })
      let isEnded = false
      void (async () => {
        for await (const _ of watch.body);
      })()
        .catch(() => {})
        .finally(() => {
          isEnded = true
        })
      let closed = 0
      for (let count = 0; count < 60; count++) {
        const socket = connectTo(Number(new URL(server).port), '127.0.0.1')
        sockets.push(socket)
        socket.on('error', () => {})
        socket.on('close', () => closed++)
        await once(socket, 'connect')
      }
      await eventually(() => closed > 20, 'the oldest connections to be closed')
      equal(isEnded, false)
    } finally {
      for (const socket of sockets) socket.destroy()
      const ended = once(gateway, 'exit')
      gateway.kill()
      await ended
    }
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
    // Discovery, OpenAPI and the version come from a partition with the same kinds, and so does who the user is.
    for (const path of ['/api', '/apis', '/apis/apps/v1', '/openapi/v2', '/openapi/v3', '/version'])
      equal((await hasty.request({ method: 'GET', path })).status, 200, path)
    const listing = await installation.run('get', 'stacks', '-n', 'acme', '--kubeconfig', 'gateway.kubeconfig', '-o', 'json')
    deepEqual((JSON.parse(listing) as { items: unknown[] }).items, [])
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const reviewed = await hasty.request({ method: 'POST', path: '/apis/authentication.k8s.io/v1/selfsubjectreviews', body: review })
    equal(reviewed.status, 201)
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
    const used = new URL(client.server).host
    match(await failure('gateway', '--config', 'gateway.json', '--listen', used), /address already in use|is in use/)
    match(await failure('gateway', '--config', 't1.partition.json'), /t1.partition.json is no GatewayConfiguration/)
    writeFileSync(join(directory, 'broken.json'), '{')
    match(await failure('gateway', '--config', 'broken.json'), /broken.json cannot be read as JSON/)
    match(await failure('partition', 'add', 'Bad_Name', '--data', 'home'), /invalid name of a partition "Bad_Name"/)
    match(await failure('partition', 'add', 'x', '--data', 't1'), /is not the data directory of the home partition/)
  })
})
