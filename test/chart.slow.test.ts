/**
 * The life of an installation by the chart on a real cluster: installation, Stacks, `helm test`, upgrade, rollback, removal and the next installation.
 * NetworkPolicies are enforced, and allow Oarlock only.
 */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { crdRevision, crdRevisionAnnotation } from '../src/app/controllers/install.ts'
import { createCertificates } from '../src/app/listener/tls-listener.ts'
import { Cluster } from './cluster/cluster.ts'
import { helmMissing, Installation, waitTimeout } from './cluster/installation.ts'
import { NetworkPolicyEnforcer } from './cluster/network-policies.ts'
import { buildOarlockImage, imageMissing, oarlockImage } from './cluster/oarlock-image.ts'
import { clusterMissing } from './cluster/programs.ts'
import { eventually } from './support/eventually.ts'

const chart = join(import.meta.dirname, '..', 'charts/oarlock')
const skip = clusterMissing() ?? imageMissing() ?? helmMissing() ?? false
const waitMs = 240_000

/** For Stacks of engine manifests: what workers may write is up to an administrator. */
const workersEdit = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: 'workers-edit', namespace: 'shop' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
  subjects: [{ kind: 'ServiceAccount', name: 'oarlock-worker', namespace: 'oarlock-system' }],
}

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
const volume = { volume: { storageClass: '' } }
const values = {
  image: { pullPolicy: 'Never' },
  stores: volume,
  joinService: volume,
  workerNamespaces: ['shop'],
  pools: { default: { spec: { lifecycle: 'OneShot', min: 0, max: 3, idleTimeout: '5s' } } },
  warmWorkers: { edge: { replicas: 1, slots: 2 } },
  networkPolicies: { clients: [], monitoring: [] },
}

test('the chart installs Oarlock in a real cluster, upgrades, rolls back, and keeps CRDs and states when it is uninstalled', {
  skip,
  timeout: 1_800_000,
}, async () => {
  const cluster = await Cluster.start({ nodes: 2, images: [buildOarlockImage()] })
  const installation = new Installation(cluster)
  const enforcer = await NetworkPolicyEnforcer.start(cluster)
  try {
    await exercise(installation)
  } finally {
    await enforcer.close().finally(() => cluster.close())
    installation.remove()
  }
})

async function exercise(installation: Installation): Promise<void> {
  const kubectl = installation.kubectl.bind(installation)
  const helm = installation.helm.bind(installation)
  const allReady = async (why: string) => {
    try {
      await kubectl('wait', '--for=condition=Ready', 'stacks', '--all', '-n', 'shop', `--timeout=${waitTimeout}`)
    } catch (error) {
      throw new Error(`${why}: ${await kubectl('get', 'stacks,runs,workers,pods', '-A', '-o', 'wide')}`, { cause: error })
    }
  }
  await installation.prepare({ labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } })
  const flags = [`--values=${installation.valuesFile('values', values)}`, '--wait', `--timeout=${waitTimeout}`]
  await helm('install', 'oarlock', chart, ...flags)
  await installation.apply([workersEdit, ...stacks])
  await allReady('after the installation')
  match(await kubectl('get', 'configmap', 'made', '-n', 'shop', '-o', 'jsonpath={.data.a}'), /^b$/)
  await helm('test', 'oarlock', `--timeout=${waitTimeout}`)
  // The image has the page.
  const readPage = `fetch('https://localhost:7473/console/').then(async r => console.log(r.status, (await r.text()).slice(0, 15)))`
  const page = [
    'exec',
    '-n',
    'oarlock-system',
    'deployment/oarlock-console-server',
    '--',
    'env',
    'NODE_TLS_REJECT_UNAUTHORIZED=0',
    'node',
    '-e',
  ]
  match(await kubectl(...page, readPage), /^200 <!doctype html>/i)

  // Another Pod reaches none of the roles; one with the label of workers does, and needs a token.
  const [worker, other] = await Promise.all([connects(installation, 'worker'), connects(installation, 'web')])
  deepEqual(worker, { stores: true, 'join-service': true, 'console-server': false })
  deepEqual(other, { stores: false, 'join-service': false, 'console-server': false })

  // Scale to zero: one-shot workers end with their Run.
  const poolPods = ['pods', '-n', 'oarlock-system', '-l', 'oarlock.dev/pool=default', '--field-selector=status.phase=Running']
  await eventually(async () => (await kubectl('get', ...poolPods, '-o', 'name')) === '', 'no worker of the pool to run', 60_000)

  // An installation with older CRDs, another setting, and a certificate of cert-manager.
  const annotation = crdRevisionAnnotation.replaceAll('.', '\\.')
  const revision = async () => await kubectl('get', 'crd', 'stacks.oarlock.dev', '-o', `jsonpath={.metadata.annotations.${annotation}}`)
  const setOlder = async () =>
    await kubectl('annotate', 'crd', 'stacks.oarlock.dev', '--overwrite', `${crdRevisionAnnotation}=${crdRevision - 1}`)
  const joinToken = async () => await kubectl('get', 'secret', 'oarlock-join-edge', '-n', 'oarlock-system', '-o', 'jsonpath={.data.token}')
  const storesCa = async () =>
    await kubectl('get', 'configmap', 'oarlock-endpoint-stores', '-n', 'oarlock-system', '-o', 'jsonpath={.data.ca\\.crt}')
  const token = await joinToken()
  const ownCa = await storesCa()
  await setOlder()
  const issuedCa = await playCertManager(installation)
  const certManager = '--set=stores.certificate.mode=CertManager,stores.certificate.issuerRef.name=internal'
  await helm('upgrade', 'oarlock', chart, ...flags, '--set=controllers.approvalTimeout=12h', certManager)
  equal(await revision(), String(crdRevision))
  equal(await joinToken(), token)
  equal(await storesCa(), issuedCa)
  await installation.apply([stack('tofu', { engine: 'opentofu' }, { 'main.tf': main(2) })])
  const applied = async () => await kubectl('get', 'secret', 'tofu-outputs', '-n', 'shop', '-o', 'jsonpath={.data.x}')
  const isApplied = async () => Buffer.from(await applied(), 'base64').toString() === '2'
  await eventually(isApplied, 'the change to be applied, with stores that another authority has certified', waitMs)
  await helm('rollback', 'oarlock', '1', '--wait', `--timeout=${waitTimeout}`)
  equal(await storesCa(), ownCa)
  await allReady('after the rollback')

  await uninstallDuringApply(installation, flags)
  const crds = (await kubectl('get', 'crds', '-o', 'name')).trim().split('\n')
  equal(crds.filter(name => name.endsWith('.oarlock.dev')).length, 5)
  const claims = await kubectl('get', 'pvc', '-n', 'oarlock-system', '-o', 'name')
  deepEqual(claims.trim().split('\n').sort(), ['persistentvolumeclaim/data-oarlock-stores-0', 'persistentvolumeclaim/oarlock-join-service'])
  ok(readdirSync(join(installation.directory, 'stores', 'stores', 'state')).includes('state.db'))
  equal((await kubectl('get', 'stacks', '-n', 'shop', '-o', 'name')).trim().split('\n').length, stacks.length + 1)

  // The same states again. CRDs that an earlier version has left are upgraded.
  await setOlder()
  await helm('install', 'oarlock', chart, ...flags)
  equal(await revision(), String(crdRevision))
  await allReady('after the second installation')
}

/** A Job stops the controllers and waits for active Runs; if it waits in vain, nothing is deleted, and the same command may be repeated. */
async function uninstallDuringApply(installation: Installation, flags: readonly string[]): Promise<void> {
  const kubectl = installation.kubectl.bind(installation)
  const helm = installation.helm.bind(installation)
  await helm('upgrade', 'oarlock', chart, ...flags, '--set=uninstall.timeout=10s')
  await installation.apply([stack('slow', { engine: 'command', command: { apply: ['sleep', '40'] } }, { f: '' })])
  const phases = async () =>
    (
      await kubectl('get', 'runs', '-n', 'shop', '-o', 'jsonpath={range .items[?(@.spec.stackRef.name=="slow")]}{.status.phase} {end}')
    ).trim()
  await eventually(phases, found => found === 'Applying', waitMs)
  await rejects(helm('uninstall', 'oarlock', `--timeout=${waitTimeout}`), /job oarlock-uninstall failed/)
  const output = await kubectl('logs', '-n', 'oarlock-system', 'job/oarlock-uninstall')
  match(output, /1 Run is active: shop\/slow-\S+ \(Applying\) after 10s; the controllers run again/)
  const replicas = async () =>
    await kubectl('get', 'deployment', 'oarlock-controllers', '-n', 'oarlock-system', '-o', 'jsonpath={.spec.replicas}')
  equal(await replicas(), '2')
  equal(await phases(), 'Applying')
  await eventually(phases, found => found === 'Succeeded', waitMs)
  await helm('uninstall', 'oarlock', '--wait', `--timeout=${waitTimeout}`)
  equal(await phases(), 'Succeeded')
}

/** Which roles a Pod with that component reaches, within 5 s each. */
async function connects(installation: Installation, component: string): Promise<Record<string, boolean>> {
  const ports = { stores: 7468, 'join-service': 7469, 'console-server': 7473 }
  const script = `const reached = {}
for (const [role, port] of Object.entries(${JSON.stringify(ports)})) {
  const socket = require("net").connect(port, "oarlock-" + role + ".oarlock-system.svc")
  const done = isReached => { reached[role] ??= isReached; socket.destroy(); if (Object.keys(reached).length === ${Object.keys(ports).length}) console.log(JSON.stringify(reached)) }
  socket.on("connect", () => done(true)).on("error", error => { if (error.code === "ENOTFOUND") throw error; done(false) })
  setTimeout(() => done(false), 5000).unref()
}`
  const name = `connects-${component}`
  await installation.apply([
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'shop', labels: { 'app.kubernetes.io/component': component } },
      spec: {
        restartPolicy: 'Never',
        // The enforcer sees a Pod some time after it runs.
        containers: [
          { name: 'a', image: oarlockImage, imagePullPolicy: 'Never', command: ['sh', '-c', 'sleep 3; exec node -e "$0"', script] },
        ],
      },
    },
  ])
  const ended = '--for=jsonpath={.status.containerStatuses[0].state.terminated}'
  await installation.kubectl('wait', ended, `pod/${name}`, '-n', 'shop', `--timeout=${waitTimeout}`)
  const log = await installation.kubectl('logs', name, '-n', 'shop')
  try {
    return JSON.parse(log) as Record<string, boolean>
  } catch (error) {
    throw new Error(`${name}: ${log}`, { cause: error })
  }
}

/** The kind Certificate, and the Secret that cert-manager would write for it, of an issuer with an authority of its own. @returns its authority. */
async function playCertManager(installation: Installation): Promise<string> {
  const any = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: any } } }
  await installation.apply([
    {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'certificates.cert-manager.io', annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' } },
      spec: {
        group: 'cert-manager.io',
        scope: 'Namespaced',
        names: { plural: 'certificates', singular: 'certificate', kind: 'Certificate', listKind: 'CertificateList' },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    },
  ])
  await installation.kubectl('wait', '--for=condition=Established', 'crd/certificates.cert-manager.io', '--timeout=60s')
  const directory = join(installation.directory, 'issued')
  await createCertificates(directory, 'oarlock-stores.oarlock-system.svc', [])
  const files = { 'tls.crt': 'serving.crt', 'tls.key': 'serving.key', 'ca.crt': 'ca.crt' }
  const read = (name: string) => readFileSync(join(directory, 'pki', name), 'utf8')
  const stringData = Object.fromEntries(Object.entries(files).map(([key, name]) => [key, read(name)]))
  const metadata = { name: 'oarlock-stores-tls', namespace: 'oarlock-system' }
  await installation.apply([{ apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls', stringData }])
  return read('ca.crt')
}
