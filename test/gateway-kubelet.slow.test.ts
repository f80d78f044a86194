/** A real kubelet, kube-scheduler and kube-controller-manager work through a gateway before two tenant and two resource partitions. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Installation } from '../examples/partitions/installation.ts'
import { writePauseImage } from './cluster/cluster.ts'
import { ClusterNetwork } from './cluster/network.ts'
import { ClusterNode } from './cluster/node.ts'
import { buildOarlockImage, imageMissing, oarlockImage } from './cluster/oarlock-image.ts'
import { built, clusterMissing, Program } from './cluster/programs.ts'
import { eventually } from './support/eventually.ts'

const skip = clusterMissing() ?? imageMissing() ?? false
const gatewayPort = 7571

class Fixture {
  readonly directory = mkdtempSync(join(tmpdir(), 'oarlock-gateway-kubelet-'))
  readonly network = new ClusterNetwork(randomBytes(2).toString('hex'))
  readonly programs: Program[] = []
  installation!: Installation
  node: ClusterNode | undefined

  async start(): Promise<void> {
    const host = this.network.hostAddress
    this.installation = await Installation.start({
      ...{ directory: join(this.directory, 'installation'), host, gatewayPort },
      ...{ tenantPartitions: ['t1', 't2'], resourcePartitions: ['r1', 'r2'] },
    })
    for (const [tenant, partition] of [
      ['acme', 't1'],
      ['umbrella', 't2'],
    ]) {
      await this.apply({
        ...{ apiVersion: 'oarlock.dev/v1alpha1', kind: 'Tenant' },
        ...{ metadata: { name: tenant, labels: { 'oarlock.dev/partition': partition } }, spec: {} },
      })
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: tenant, labels: { 'oarlock.dev/tenant': tenant } } }
      await eventually(async () => (await this.tryApply(namespace)).code === 0, `namespace ${tenant}`)
    }
    const { kubeconfig } = this.installation
    const home = (name: string) => join(this.installation.directory, 'home', 'pki', name)
    this.run('kube-scheduler', [`--kubeconfig=${kubeconfig}`, '--leader-elect=false'])
    this.run('kube-controller-manager', [
      ...[`--kubeconfig=${kubeconfig}`, '--leader-elect=false'],
      ...[`--service-account-private-key-file=${home('service-account.key')}`, `--root-ca-file=${home('ca.crt')}`],
    ])
    await this.startNode(1, 'r1')
  }

  async startNode(number: 1, partition: string): Promise<void> {
    const files = join(this.directory, `n${number}-files`)
    const file = (name: string) => join(files, name)
    const address = this.network.nodeAddress(number)
    const server = `https://${this.network.hostAddress}:${gatewayPort}`
    await this.installation.run('node-config', `n${number}`, '--data', 'home', '--server', server, '--address', address, '--to', files)
    this.node = await ClusterNode.start({
      directory: join(this.directory, `n${number}`),
      network: this.network,
      controlPlane: { kubeconfig: user => (user === `system:node:n${number}` ? file('kubeconfig') : this.installation.kubeconfig) },
      number,
      images: [await writePauseImage(this.directory), buildOarlockImage()],
      labels: { 'oarlock.dev/partition': partition },
      kubelet: {
        authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: file('client-ca.crt') } },
        authorization: { mode: 'Webhook' },
        tlsCertFile: file('kubelet.crt'),
        tlsPrivateKeyFile: file('kubelet.key'),
      },
    })
    await this.node.program('kubelet').ready(async () => / Ready /.test(await this.kubectl('get', 'node', `n${number}`)))
  }

  run(name: string, args: readonly string[]): void {
    this.programs.push(new Program(name, join(this.directory, `${name}.log`), [built(name), ...args]))
  }

  /** @returns what it printed. @throws {Error} with its output and error, if it fails. */
  async kubectl(...args: string[]): Promise<string> {
    const { code, text } = await this.tryKubectl(args)
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${text}`)
    return text
  }

  async tryKubectl(
    args: readonly string[],
    input = '',
    kubeconfig = this.installation.kubeconfig,
  ): Promise<{ code: number; text: string }> {
    const child = spawn('kubectl', [`--kubeconfig=${kubeconfig}`, ...args], { stdio: 'pipe', timeout: 120_000 })
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (text += chunk))
    child.stdin.end(input)
    const [code] = (await once(child, 'close')) as [number]
    return { code, text }
  }

  async direct(partition: string, ...args: string[]): Promise<string> {
    return (await this.tryKubectl(args, '', this.installation.partitionKubeconfig(partition))).text
  }

  tryApply(object: object) {
    return this.tryKubectl(['apply', '-f', '-'], JSON.stringify(object))
  }

  async apply(object: object): Promise<void> {
    const { code, text } = await this.tryApply(object)
    equal(code, 0, text)
  }

  async close(): Promise<void> {
    await this.node?.stop()
    for (const program of this.programs) await program.stop()
    await this.installation?.stop()
    // The last processes of a network namespace have to be gone.
    await sleep(100)
    this.network.close()
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

const deployment = (namespace: string) => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { namespace, name: 'web' } },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            ...{ name: 'main', image: oarlockImage, imagePullPolicy: 'Never' },
            command: ['node', '-e', `console.log('hello from ${namespace}'); setInterval(() => {}, 1000)`],
          },
        ],
      },
    },
  },
})

describe('Kubernetes through a gateway', { skip, timeout: 900_000 }, () => {
  let fixture: Fixture
  before(async () => {
    fixture = new Fixture()
    await fixture.start()
  })
  after(() => fixture.close())

  test('the Node and its Lease are in their resource partition, and the Lease is renewed', async () => {
    match(await fixture.direct('r1', 'get', 'node', 'n1'), /n1 +Ready/)
    match(await fixture.direct('r2', 'get', 'node', 'n1'), /not found/)
    const renewed = () => fixture.direct('r1', '-n', 'kube-node-lease', 'get', 'lease', 'n1', '-o', 'jsonpath={.spec.renewTime}')
    const first = await eventually(async () => /^\d{4}-.*/.exec(await renewed())?.[0], 'the Lease of the node', 30_000)
    await eventually(async () => (await renewed()) !== first, 'a renewal', 30_000)
    match(await fixture.direct('home', '-n', 'kube-node-lease', 'get', 'lease', 'n1'), /not found/)
  })

  test('Deployments of two tenants run on one node', async () => {
    for (const namespace of ['acme', 'umbrella']) await fixture.apply(deployment(namespace))
    for (const namespace of ['acme', 'umbrella'])
      await fixture.kubectl('-n', namespace, 'wait', '--for=condition=Available', '--timeout=120s', 'deployment/web')
    const nodes = await fixture.kubectl(
      'get',
      'pods',
      '-A',
      '-l',
      'app=web',
      '-o',
      'jsonpath={range .items[*]}{.metadata.namespace}={.spec.nodeName} {end}',
    )
    deepEqual(nodes.trim().split(' ').sort(), ['acme=n1', 'umbrella=n1'])
    match(await fixture.direct('t1', 'get', 'pods', '-A'), /acme/)
    equal(/umbrella/.test(await fixture.direct('t1', 'get', 'pods', '-A')), false)
  })

  test('kubectl logs and exec reach the Pods of both tenants', async () => {
    for (const namespace of ['acme', 'umbrella']) {
      match(await fixture.kubectl('-n', namespace, 'logs', 'deployment/web'), new RegExp(`hello from ${namespace}`))
      const text = await fixture.kubectl('-n', namespace, 'exec', 'deployment/web', '--', 'node', '-e', 'console.log(6 * 7)')
      match(text, /^42$/m)
    }
  })

  test('Events are in the partition of what they are about', async () => {
    const reasons = async (partition: string, ...args: string[]) =>
      (await fixture.direct(partition, 'get', 'events', '-o', 'jsonpath={.items[*].reason}', ...args)).split(' ')
    for (const [namespace, own, other] of [
      ['acme', 't1', 't2'],
      ['umbrella', 't2', 't1'],
    ] as const) {
      const found = await reasons(own, '-n', namespace)
      for (const reason of ['Scheduled', 'Started', 'ScalingReplicaSet'])
        equal(found.includes(reason), true, `${reason} in ${own}: ${found}`)
      equal((await reasons(other, '-n', namespace)).join(''), '')
    }
    const ofNode = await reasons('r1', '-n', 'default', '--field-selector', 'involvedObject.kind=Node')
    equal(ofNode.includes('NodeReady') || ofNode.includes('Starting'), true, ofNode.join())
    match(await fixture.kubectl('-n', 'default', 'get', 'events', '--field-selector', 'involvedObject.kind=Node'), /node\/n1/)
  })

  test('a Deployment is scaled and deleted, and its Pods are gone', async () => {
    await fixture.kubectl('-n', 'acme', 'scale', 'deployment/web', '--replicas=2')
    await fixture.kubectl('-n', 'acme', 'rollout', 'status', 'deployment/web', '--timeout=120s')
    await fixture.kubectl('-n', 'acme', 'delete', 'deployment', 'web', '--cascade=foreground', '--timeout=90s')
    await eventually(async () => (await fixture.kubectl('-n', 'acme', 'get', 'pods', '-o', 'name')).trim() === '', 'no Pods', 60_000)
    match(await fixture.kubectl('-n', 'umbrella', 'get', 'pods'), /Running/)
  })

  test('a namespace with a Pod is deleted', async () => {
    await fixture.kubectl('delete', 'namespace', 'umbrella', '--timeout=120s')
    match(await fixture.direct('t2', 'get', 'namespace', 'umbrella'), /not found/)
  })
})
