import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { stringify } from 'yaml'
import { crdRevision, crdRevisionAnnotation } from '../src/app/controllers/install.ts'
import { Cluster } from './cluster/cluster.ts'
import { buildOarlockImage, imageMissing } from './cluster/oarlock-image.ts'
import { clusterMissing } from './cluster/programs.ts'

const run = promisify(execFile)
const chart = join(import.meta.dirname, '..', 'charts/oarlock')
const clients = process.env.OARLOCK_CLIENTS_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock', 'clients')
const helmProgram = join(clients, 'helm')
const helmMissing = existsSync(helmProgram) ? undefined : 'helm not found: run scripts/build-clients.sh (needs Go)'
const skip = clusterMissing() ?? imageMissing() ?? helmMissing ?? false
/** On two slow cores, where other tests run at the same time. */
const waitTimeout = '300s'

const system = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'oarlock-system', labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
}
const shop = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }
/** For Stacks of engine manifests: what workers may write is up to an administrator. */
const workersEdit = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: 'workers-edit', namespace: 'shop' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
  subjects: [{ kind: 'ServiceAccount', name: 'oarlock-worker', namespace: 'oarlock-system' }],
}

const volume = (name: string, claim: string, path: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: {
    capacity: { storage: '10Gi' },
    accessModes: ['ReadWriteOnce'],
    persistentVolumeReclaimPolicy: 'Retain',
    storageClassName: '',
    hostPath: { path },
    claimRef: { namespace: 'oarlock-system', name: claim },
  },
})

const stack = (name: string, spec: object, files: Record<string, string>) => ({
  apiVersion: 'oarlock.dev/v1alpha1',
  kind: 'Stack',
  metadata: { name, namespace: 'shop' },
  spec: { ...spec, source: { inline: { files } } },
})
const main = (input: number) =>
  `resource "terraform_data" "x" {\n  input = ${input}\n}\noutput "x" {\n  value = terraform_data.x.output\n}\n`
const configMap = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'made' }, data: { a: 'b' } })
const stacks = [
  stack('command', { engine: 'command', command: { apply: ['cat', 'hello.txt'] } }, { 'hello.txt': 'hello' }),
  stack('tofu', { engine: 'opentofu' }, { 'main.tf': main(1) }),
  stack('manifests', { engine: 'manifests' }, { 'config.yaml': configMap }),
  stack('warm', { engine: 'opentofu', pool: 'edge' }, { 'main.tf': main(1) }),
]
const values = {
  image: { pullPolicy: 'Never' },
  stores: { volume: { storageClass: '' } },
  joinService: { volume: { storageClass: '' } },
  workerNamespaces: ['shop'],
  pools: { default: { spec: { lifecycle: 'OneShot', min: 0, max: 3, idleTimeout: '5s' } } },
  warmWorkers: { edge: { replicas: 1, slots: 2 } },
}

test('the chart installs Oarlock in a real cluster, upgrades, rolls back, and keeps CRDs and states when it is uninstalled', {
  skip,
  timeout: 1_800_000,
}, async () => {
  const image = buildOarlockImage()
  const volumes = mkdtempSync(join(tmpdir(), 'oarlock-volumes-'))
  const cluster = await Cluster.start({ nodes: 2, images: [image] })
  try {
    await exercise(cluster, volumes)
  } finally {
    await cluster.close()
    rmSync(volumes, { recursive: true, force: true })
  }
})

async function exercise({ kubeconfig }: Cluster, volumes: string): Promise<void> {
  const env = { ...process.env, KUBECONFIG: kubeconfig }
  const kubectl = async (...args: string[]) => (await run('kubectl', args, { env, maxBuffer: 2 ** 26 })).stdout
  const apply = async (objects: readonly object[]) => {
    const child = run('kubectl', ['apply', '-f', '-'], { env })
    child.child.stdin?.end(objects.map(object => `---\n${stringify(object)}`).join(''))
    await child
  }
  const helm = async (...args: string[]) => {
    try {
      return (await run(helmProgram, [...args, '--namespace=oarlock-system'], { env })).stdout
    } catch (error) {
      const pods = await kubectl('get', 'pods', '-A', '-o', 'wide')
      throw new Error(`helm ${args.join(' ')}: ${(error as { stderr?: string }).stderr}\n${pods}`, { cause: error })
    }
  }
  const allReady = async (why: string) => {
    try {
      await kubectl('wait', '--for=condition=Ready', 'stacks', '--all', '-n', 'shop', `--timeout=${waitTimeout}`)
    } catch (error) {
      throw new Error(`${why}: ${await kubectl('get', 'stacks,runs,workers,pods', '-A', '-o', 'wide')}`, { cause: error })
    }
  }
  const valuesFile = join(volumes, 'values.yaml')
  writeFileSync(valuesFile, stringify(values))
  for (const name of ['stores', 'join']) {
    mkdirSync(join(volumes, name))
    chownSync(join(volumes, name), 65532, 65532)
  }
  await apply([system, shop, volume('stores', 'data-oarlock-stores-0', join(volumes, 'stores'))])
  await apply([volume('join', 'oarlock-join-service', join(volumes, 'join'))])

  const flags = [`--values=${valuesFile}`, '--wait', `--timeout=${waitTimeout}`]
  await helm('install', 'oarlock', chart, ...flags)
  await apply([workersEdit, ...stacks])
  await allReady('after the installation')
  match(await kubectl('get', 'configmap', 'made', '-n', 'shop', '-o', 'jsonpath={.data.a}'), /^b$/)
  await helm('test', 'oarlock', `--timeout=${waitTimeout}`)

  // Scale to zero: one-shot workers end with their Run.
  const runningWorkers = async () =>
    await kubectl(
      'get',
      'pods',
      '-n',
      'oarlock-system',
      '-l',
      'oarlock.dev/pool=default',
      '--field-selector=status.phase=Running',
      '-o',
      'name',
    )
  for (let i = 0; (await runningWorkers()) !== '' && i < 120; i++) await sleep(500)
  equal(await runningWorkers(), '')

  // An installation with older CRDs and another setting.
  const revision = async () =>
    await kubectl(
      'get',
      'crd',
      'stacks.oarlock.dev',
      '-o',
      `jsonpath={.metadata.annotations.${crdRevisionAnnotation.replaceAll('.', '\\.')}}`,
    )
  const token = await kubectl('get', 'secret', 'oarlock-join-edge', '-n', 'oarlock-system', '-o', 'jsonpath={.data.token}')
  await kubectl('annotate', 'crd', 'stacks.oarlock.dev', '--overwrite', `${crdRevisionAnnotation}=${crdRevision - 1}`)
  await helm('upgrade', 'oarlock', chart, ...flags, '--set=controllers.approvalTimeout=12h')
  equal(await revision(), String(crdRevision))
  equal(await kubectl('get', 'secret', 'oarlock-join-edge', '-n', 'oarlock-system', '-o', 'jsonpath={.data.token}'), token)
  await apply([stack('tofu', { engine: 'opentofu' }, { 'main.tf': main(2) })])
  const applied = async () => await kubectl('get', 'secret', 'tofu-outputs', '-n', 'shop', '-o', 'jsonpath={.data.x}')
  for (let i = 0; (await applied()) !== Buffer.from('2').toString('base64') && i < 240; i++) await sleep(500)
  equal(Buffer.from(await applied(), 'base64').toString(), '2')
  await helm('rollback', 'oarlock', '1', '--wait', `--timeout=${waitTimeout}`)
  await allReady('after the rollback')

  await helm('uninstall', 'oarlock', '--wait', `--timeout=${waitTimeout}`)
  const crds = (await kubectl('get', 'crds', '-o', 'name')).trim().split('\n')
  equal(crds.filter(name => name.endsWith('.oarlock.dev')).length, 5)
  const claims = await kubectl('get', 'pvc', '-n', 'oarlock-system', '-o', 'name')
  deepEqual(claims.trim().split('\n').sort(), ['persistentvolumeclaim/data-oarlock-stores-0', 'persistentvolumeclaim/oarlock-join-service'])
  ok(readdirSync(join(volumes, 'stores', 'stores', 'state')).includes('state.db'))
  equal((await kubectl('get', 'stacks', '-n', 'shop', '-o', 'name')).trim().split('\n').length, stacks.length)

  // The same states again.
  await helm('install', 'oarlock', chart, ...flags)
  await allReady('after the second installation')
}
