/** The recipes of docs/autoscaling.md for KEDA, with a real KEDA in a real cluster. Built by scripts/build-keda.sh, which .ci/run does not call. */
import { deepEqual, equal } from 'node:assert/strict'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { writeOciArchive } from '../image/oci-archive.ts'
import { isEnded } from '../src/api/index.ts'
import type { Client } from '../src/kubernetes/client/index.ts'
import { describeResource } from '../src/kubernetes/object/index.ts'
import { InstalledChart, installedChartMissing } from './cluster/installed-chart.ts'
import { oarlockImage } from './cluster/oarlock-image.ts'
import { eventually } from './support/eventually.ts'
import { StackFixture } from './support/stacks.ts'

const keda = join(
  process.env.OARLOCK_KEDA_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock', 'keda'),
  'current',
)
const kedaMissing = ['operator', 'adapter', 'keda.yaml'].every(name => existsSync(join(keda, name)))
  ? undefined
  : 'KEDA was not found: run scripts/build-keda.sh (needs Go)'
const skip = installedChartMissing() ?? kedaMissing ?? false
const waitMs = 300_000
const kedaImage = 'localhost/keda:test'

type Manifest = { kind: string; metadata: { name: string; namespace?: string }; [field: string]: unknown }
type PodTemplate = { spec: { containers: { image: string; imagePullPolicy: string; volumeMounts: object[] }[]; volumes: object[] } }
const jobResource = describeResource<{ status?: { succeeded?: number } }>({
  ...{ group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', scope: 'Namespaced' },
})
const deploymentResource = describeResource<{ spec: { replicas?: number } }>({
  ...{ group: 'apps', version: 'v1', kind: 'Deployment', plural: 'deployments', scope: 'Namespaced' },
})

const directory = mkdtempSync(join(tmpdir(), 'oarlock-keda-'))
let chart: InstalledChart
let client: Client
let stacks: StackFixture

before(async () => {
  if (skip) return
  const replicas = 0
  chart = await InstalledChart.start(
    {
      pools: {},
      controllers: { replicas: 1 },
      warmWorkers: { jobs: { replicas, spec: { lifecycle: 'OneShot', max: 5 } }, warm: { replicas, spec: { max: 2 } } },
    },
    [await writeKedaImage()],
  )
  client = chart.cluster.client
  stacks = new StackFixture(client, 'shop')
  const manifests = parseAllDocuments(readFileSync(join(keda, 'keda.yaml'), 'utf8')).map(document => document.toJSON() as Manifest)
  const isLate = ({ kind }: Manifest) => kind === 'Deployment' || kind === 'APIService'
  await chart.apply(...manifests.filter(object => !isLate(object)))
  await chart.apply(...manifests.filter(isLate).map(useOwnImage))
  const timeout = `--timeout=${waitMs / 1_000}s`
  try {
    await chart.kubectl('wait', '--for=condition=Available', 'deployments', '--all', '-n', 'keda', timeout)
    await chart.kubectl('wait', '--for=condition=Available', 'apiservice/v1beta1.external.metrics.k8s.io', timeout)
  } catch (error) {
    const state = await chart.kubectl('get', 'pods,events', '-n', 'keda', '-o', 'wide')
    throw new Error(`${state}\n${await chart.kubectl('logs', 'deployment/keda-operator', '-n', 'keda')}`, { cause: error })
  }
  await chart.apply(...recipes.filter(({ kind }) => !kind.startsWith('Scaled')))
})
after(async () => {
  await chart?.close()
  rmSync(directory, { recursive: true, force: true })
})

/** All objects in the section of the page. */
const recipes: readonly Manifest[] = (() => {
  const page = readFileSync(join(import.meta.dirname, '..', 'docs', 'autoscaling.md'), 'utf8')
  const section = page.slice(page.indexOf('\n## KEDA'), page.indexOf('\n## HorizontalPodAutoscaler'))
  const blocks = [...section.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text)
  return blocks.flatMap(text => parseAllDocuments(text).map(document => document.toJSON() as Manifest))
})()
const recipe = (kind: string) => structuredClone(recipes.find(object => object.kind === kind)!)

const command = (pool: string, seconds: number) => ({
  ...{ engine: 'command' as const, pool, command: { apply: ['sleep', String(seconds)] } },
  source: { inline: { files: { 'run.sh': '' } } },
})
const untilEnded = async (name: string) => (await stacks.untilRun(name, 'the end', isEnded, waitMs)).status?.phase
const operatorLog = async () => await chart.kubectl('logs', 'deployment/keda-operator', '-n', 'keda', '--tail=40')
/** With the log of KEDA in the error. */
const explained = async <T>(work: Promise<T>): Promise<T> =>
  await work.catch(async error => {
    throw new Error(`${error.message}\n${await chart.kubectl('get', 'pods,jobs,runs,workerpools', '-A')}\n${await operatorLog()}`)
  })

test('a ScaledJob starts exactly one Job for each Run, also while others run', { skip, timeout: 1_800_000 }, async () => {
  const scaledJob = recipe('ScaledJob')
  const { template } = (scaledJob.spec as { jobTargetRef: { template: PodTemplate } }).jobTargetRef
  Object.assign(template.spec.containers[0]!, { image: oarlockImage, imagePullPolicy: 'Never' })
  await chart.apply(scaledJob)
  for (const name of ['one', 'two']) await stacks.create(name, command('jobs', 150))
  for (const name of ['one', 'two'])
    await explained(stacks.untilRun(name, 'the start', ({ status }) => status?.phase === 'Applying', waitMs))
  await stacks.create('three', command('jobs', 1))
  equal(await explained(untilEnded('three')), 'Succeeded')
  const unfinished = (await Promise.all(['one', 'two'].map(async name => (await stacks.runsOf(name))[0]))).filter(
    run => run && !isEnded(run),
  )
  deepEqual(await Promise.all(['one', 'two'].map(untilEnded)), ['Succeeded', 'Succeeded'])
  equal(unfinished.length, 2, 'the third Run did not wait for a running Job')
  const { items } = await client
    .resource(jobResource)
    .listAll({ namespace: 'oarlock-system', labelSelector: 'scaledjob.keda.sh/name=oarlock-jobs' })
  equal(items.length, 3, 'no Job without a Run')
})

test('a ScaledObject scales a Deployment of workers from 0, and back to 0', { skip, timeout: 1_800_000 }, async () => {
  const scaledObject = recipe('ScaledObject')
  const name = 'oarlock-workers-warm'
  Object.assign(scaledObject.spec as object, { scaleTargetRef: { name }, cooldownPeriod: 10 })
  await chart.apply(scaledObject)
  const replicas = async () => (await client.resource(deploymentResource).get(name, { namespace: 'oarlock-system' })).spec.replicas
  equal(await replicas(), 0)
  for (const each of ['warm-1', 'warm-2']) await stacks.create(each, command('warm', 60))
  await explained(eventually(async () => (await replicas()) === 2, 'two replicas', waitMs))
  deepEqual(await explained(Promise.all(['warm-1', 'warm-2'].map(untilEnded))), ['Succeeded', 'Succeeded'])
  await explained(eventually(async () => (await replicas()) === 0, 'no replicas', waitMs))
})

function useOwnImage(manifest: Manifest): Manifest {
  if (manifest.kind !== 'Deployment') return manifest
  const { template } = manifest.spec as { template: PodTemplate }
  const [container] = template.spec.containers
  Object.assign(container!, { image: kedaImage, imagePullPolicy: 'Never', resources: {} })
  // As docs/autoscaling.md describes.
  if (manifest.metadata.name === 'keda-operator') {
    template.spec.volumes.push({ name: 'ca', configMap: { name: 'kube-root-ca.crt' } })
    container!.volumeMounts.push({ name: 'ca', mountPath: '/custom/ca', readOnly: true })
  }
  return manifest
}

/** KEDA's own images have these programs at the same paths. */
async function writeKedaImage(): Promise<string> {
  const root = join(directory, 'image')
  mkdirSync(root)
  copyFileSync(join(keda, 'operator'), join(root, 'keda'))
  copyFileSync(join(keda, 'adapter'), join(root, 'keda-adapter'))
  const output = join(directory, 'keda.tar')
  const architecture = process.arch === 'x64' ? 'amd64' : 'arm64'
  const layers = [{ description: 'KEDA', directory: root }]
  await writeOciArchive({ name: kedaImage, layers, config: { User: '1000' }, architecture, createdAtSeconds: 0, output })
  return output
}
