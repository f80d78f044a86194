import { deepEqual, equal, notEqual } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { componentResource, defaultComponents, kymaResource } from '../examples/kyma/kinds.ts'
import { Cluster } from './cluster/cluster.ts'
import { imageMissing } from './cluster/oarlock-image.ts'
import { clusterMissing } from './cluster/programs.ts'

const root = join(import.meta.dirname, '..')
const kymaCount = 20
const namespace = 'kyma-operator'
const folder = mkdtempSync(join(tmpdir(), 'oarlock-kyma-image-'))
after(() => rmSync(folder, { recursive: true, force: true }))

test('the Kyma operator runs in a cluster from its image and manifests, and when its leader is killed, the other replica finishes all Kymas', {
  skip: clusterMissing() ?? imageMissing() ?? false,
  timeout: 1_200_000,
}, async () => {
  const image = join(folder, 'image.tar')
  const args = ['--operator', 'examples/kyma/main.ts', '--name', 'localhost/kyma-operator:0.1.0', '--output', image]
  execFileSync(process.execPath, ['image/build.ts', ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  const cluster = await Cluster.start({ nodes: 1, images: [image] })
  try {
    await exercise(cluster)
  } finally {
    await cluster.close()
  }
})

async function exercise({ client, kubeconfig }: Cluster): Promise<void> {
  const kubectl = (...args: string[]) => execFileSync('kubectl', [`--kubeconfig=${kubeconfig}`, ...args], { encoding: 'utf8' })
  const within = async (what: string, seconds: number, isDone: () => Promise<boolean>) => {
    for (const endMs = Date.now() + seconds * 1_000; !(await isDone()); await sleep(500)) {
      if (Date.now() < endMs) continue
      const logs = kubectl('logs', '-n', namespace, '-l', 'app.kubernetes.io/name=kyma-operator', '--prefix', '--tail=30')
      throw new Error(`${what}: not within ${seconds} s\n${kubectl('get', 'pods,leases,events', '-n', namespace)}\n${logs}`)
    }
  }
  const leader = () =>
    kubectl('get', 'lease', 'kyma-operator', '-n', namespace, '--ignore-not-found', '-o', 'jsonpath={.spec.holderIdentity}').split('_')[0]

  kubectl('apply', '-k', join(root, 'examples', 'kyma', 'deploy'))
  await within('two replicas are available', 300, async () => {
    const available = kubectl('get', 'deployment', 'kyma-operator', '-n', namespace, '-o', 'jsonpath={.status.availableReplicas}')
    return available === '2' && leader() !== ''
  })

  const kymas = client.resource(kymaResource)
  const components = client.resource(componentResource)
  const spec = { components: [...defaultComponents] }
  for (let index = 0; index < kymaCount; index++) await kymas.create({ metadata: { name: `kyma-${index}`, namespace: 'default' }, spec })
  const componentCount = kymaCount * defaultComponents.length
  const createdUids = async () => (await components.list({ namespace: 'default' })).items.map(({ metadata }) => metadata.uid).sort()
  await within('all components are created', 180, async () => (await createdUids()).length === componentCount)
  const uids = await createdUids()

  const list = async () => (await kymas.list({ namespace: 'default' })).items
  const isInstalled = async () => (await list()).every(({ status }) => status?.status === 'success')
  const first = leader() as string
  equal(await isInstalled(), false)
  kubectl('delete', 'pod', first, '-n', namespace, '--force', '--grace-period=0')
  await within('another Pod leads', 120, async () => leader() !== first)
  notEqual(leader(), first)
  await within('all Kymas are installed', 400, isInstalled)

  deepEqual(
    (await list()).map(({ status }) => status),
    Array.from({ length: kymaCount }, () => ({ status: 'success', waitingFor: [] })),
  )
  const { items } = await components.list({ namespace: 'default' })
  deepEqual(items.map(({ metadata }) => metadata.uid).sort(), uids)
  deepEqual([...new Set(items.map(({ status }) => status?.status))], ['success'])

  // Its rights end where its work does.
  const may = (...request: string[]) => {
    try {
      return kubectl('auth', 'can-i', ...request, `--as=system:serviceaccount:${namespace}:kyma-operator`).trim()
    } catch (error) {
      return String((error as { stdout?: string }).stdout).trim()
    }
  }
  equal(may('list', 'secrets', '-n', namespace), 'no')
  equal(may('update', 'kymas.inventory.kyma-project.io', '-n', 'default'), 'no')
  const metrics = kubectl('get', '--raw', `/api/v1/namespaces/${namespace}/services/kyma-operator-metrics:metrics/proxy/metrics`)
  equal(/^controller_runtime_reconcile_errors_total\{.*controller="helmcomponent".*\} [1-9]/m.test(metrics), false)
  equal(metrics.includes('leader_election_master_status'), true)
}

test('the CRDs of the manifests are those of the kinds', async () => {
  const { crdsYaml } = await import('../examples/kyma/print-crds.ts')
  equal(readFileSync(join(root, 'examples', 'kyma', 'deploy', 'crds.yaml'), 'utf8'), crdsYaml)
})
