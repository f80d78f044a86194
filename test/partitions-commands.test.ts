/** Commands of users through a gateway, which find the stores and controllers of the partition that has what they ask for. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Installation } from '../examples/partitions/installation.ts'
import { type StackSpec, stackResource, tenantResource } from '../src/api/index.ts'
import { type Client, namespaceResource } from '../src/kubernetes/client/index.ts'
import { kubectlFor } from './clients/kubectl.ts'
import { eventually } from './support/eventually.ts'
import { createTenant } from './support/gateway/create-tenant.ts'
import { untilKindsMatch } from './support/gateway/until-kinds-match.ts'
import { PartitionsFixture } from './support/partitions-fixture.ts'
import { runOarlock, skipWithout } from './support/run-program.ts'

const spec: StackSpec = { engine: 'terraform', source: { inline: { files: { 'main.tf': '' } } }, suspend: true }
const state = JSON.stringify({ version: 4, terraform_version: '1.9.0', serial: 1, lineage: 'a', outputs: {}, resources: [] })

describe('commands through a gateway', { timeout: 180_000 }, () => {
  const fixture = new PartitionsFixture()
  const { directory } = fixture
  let installation: Installation
  let client: Client
  before(async () => {
    ;({ installation, client } = await fixture.start({ tenantPartitions: ['t1', 't2'] }))
    const { kubeconfig } = installation
    for (const [name, partition] of [
      ['acme', 't1'],
      ['umbrella', 't2'],
    ] as const) {
      await createTenant(client, name, partition)
      const namespaceSelector = { matchLabels: { 'oarlock.dev/tenant': name } }
      await client.resource(tenantResource).patch(name, { spec: { namespaceSelector } }, { type: 'merge' })
      await client.resource(stackResource).create({ metadata: { namespace: name, name: 'network' }, spec })
    }
    const own = ['--kubeconfig', installation.partitionKubeconfig('t1'), '--workers-kubeconfig', kubeconfig]
    const any = ['--listen', '127.0.0.1:0']
    const roles = [
      installation.add('stores-t1', ['stores', ...own, '--partition', 't1', '--data', 'stores-t1', ...any]),
      ...['t1', 'home'].map(name => {
        const access = ['--kubeconfig', installation.partitionKubeconfig(name), '--workers-kubeconfig', kubeconfig]
        const args = [...access, '--partition', name, '--no-default-pool', '--data', `controller-${name}`, ...any]
        return installation.add(`controller-${name}`, ['controller', ...args, '--health-address', '127.0.0.1:0'])
      }),
    ]
    await Promise.all(roles.map(role => role.until(/^ready: /m)))
  })
  after(() => fixture.stop())
  const oarlock = (args: string, input?: string) =>
    runOarlock(args.split(' '), { cwd: directory, env: { KUBECONFIG: installation.kubeconfig }, ...(input !== undefined && { input }) })
  const succeeds = async (args: string, input?: string) => {
    const { code, stdout, stderr } = await oarlock(args, input)
    equal(code, 0, `oarlock ${args}: ${stderr}${stdout}`)
    return stdout
  }
  const fails = async (args: string) => {
    const { code, stderr } = await oarlock(args)
    return { code, stderr }
  }

  test('a state is written to and read from the stores of the partition of its Stack', async () => {
    await succeeds('state push network - -n acme --yes', state)
    equal(JSON.parse(await succeeds('state pull network -n acme')).lineage, 'a')
    match(await succeeds('state list -n acme'), /network +state +1 /)
    const direct = await runOarlock(['state', 'pull', 'network', '-n', 'acme'], {
      env: { KUBECONFIG: installation.partitionKubeconfig('t1') },
    })
    equal(JSON.parse(direct.stdout).lineage, 'a', direct.stderr)
  })

  test('the queue of a namespace is that of its partition, and that without a namespace is named', async () => {
    const { suspend: _, ...active } = spec
    await client.resource(stackResource).create({ metadata: { namespace: 'acme', name: 'queued' }, spec: active })
    await eventually(async () => /\bqueued-/.test(await succeeds('queue -n acme')), 'the queued Run')
    const { code, stderr } = await oarlock('queue')
    equal(code, 0, stderr)
    match(stderr, /the queue of partition home; "oarlock queue -n NAMESPACE"/)
  })

  test('a backup and the keys of one partition are not those of all: the gateway rejects them with what to do', async () => {
    for (const args of [
      `backup --to ${join(directory, 'b.tar')} --kubeconfig ${installation.kubeconfig}`,
      `encryption rotate --yes --kubeconfig ${installation.kubeconfig}`,
    ]) {
      const { code, stderr } = await fails(args)
      deepEqual([args, code], [args, 3])
      match(stderr, /is served by each partition for itself: use the kubeconfig of the partition/)
    }
  })

  test('the counts of a Tenant are those of its partition, and follow its namespaces and Runs', async () => {
    const countsOf = async (name: string) => {
      const { namespaces, queued, running } = (await client.resource(tenantResource).get(name)).status ?? {}
      return `${namespaces} ${queued} ${running}`
    }
    await eventually(async () => (await countsOf('acme')) === '1 1 0', 'the counts of acme')
    await client.resource(namespaceResource).create({ metadata: { name: 'acme-2', labels: { 'oarlock.dev/tenant': 'acme' } } })
    await client.resource(stackResource).delete('queued', { namespace: 'acme' })
    await eventually(async () => (await countsOf('acme')) === '2 0 0', 'the counts of acme after a change')
    // Nothing reports those of t2, and home does not take its own for them.
    equal(await countsOf('umbrella'), 'undefined undefined undefined')
    await client.resource(tenantResource).create({ metadata: { name: 'at-home', labels: { 'oarlock.dev/partition': 'home' } }, spec: {} })
    await eventually(async () => (await countsOf('at-home')) === '0 0 0', 'the counts of a Tenant of home')
  })

  test('a partition without stores is named, and so is one that does not answer', async () => {
    const { code, stderr } = await fails('state pull network -n umbrella')
    equal(code, 5)
    match(stderr, /the stores of partition "t2" have not published an address/)
    await installation.role('stores-t1').end()
    const down = await fails('state pull network -n acme')
    equal(down.code, 5)
    match(down.stderr, /the stores do not answer at https:\S+ \(ECONNREFUSED\)/)
    installation.role('stores-t1').restart()
    await installation.role('stores-t1').until(/^ready: /m)
  })

  test('with home killed, kubectl with an empty cache applies, gets and explains what is in a partition', {
    skip: skipWithout('kubectl'),
  }, async () => {
    await untilKindsMatch(client, 't1')
    // A list of all partitions waits until the gateway knows the Partitions as home has them now, with this condition.
    await client.resource(stackResource).listAll({})
    const home = installation.role('home')
    await home.end('SIGKILL')
    const kubectl = (name: string) => kubectlFor({ kubeconfig: installation.kubeconfig, directory: join(directory, name) })
    match(await kubectl('get').output('get stacks,configmaps -n acme'), /stack\S*\/network/)
    const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'acme', name: 'applied' }, data: { a: '1' } }
    await kubectl('apply').output('apply -f -', JSON.stringify(manifest))
    await kubectl('apply-server').output(
      'apply --server-side -f -',
      JSON.stringify({ ...manifest, metadata: { namespace: 'acme', name: 'second' } }),
    )
    match(await kubectl('explain').output('explain stacks.spec.engine'), /KIND: +Stack/)
    match(await kubectl('explain').output('api-resources'), /stacks /)
    match(await succeeds('get stacks -n acme'), /network/)
    match(await succeeds('describe stack network -n acme'), /network/)
    const logs = await fails('state pull network -n acme')
    equal(logs.code, 5)
    match(logs.stderr, /the partition of namespace acme cannot be found: .*partition "home" does not answer/)
    home.restart()
    await home.until(/^ready: /m)
  })
})
