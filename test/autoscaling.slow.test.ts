/**
 * Oarlock's `external.metrics.k8s.io` in a real cluster: kube-apiserver's aggregation layer, the HPA controller of kube-controller-manager, and Pods
 * of workers on a kubelet.
 */
import { deepEqual, equal, match } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isEnded, type WorkerPool, workerPoolResource, workerResource } from '../src/api/index.ts'
import type { Client } from '../src/kubernetes/client/index.ts'
import { describeResource, type KubeObject } from '../src/kubernetes/object/index.ts'
import { InstalledChart, installedChartMissing } from './cluster/installed-chart.ts'
import { eventually } from './support/eventually.ts'
import { ScriptedWorkers } from './support/scripted-workers.ts'
import { StackFixture } from './support/stacks.ts'

const skip = installedChartMissing() ?? false
/** On two slow cores, where other tests run at the same time. */
const waitMs = 240_000
/** kube-controller-manager of the cluster syncs HPAs every 5 s. */
const syncMs = 5_000

type Hpa = {
  spec: object
  status?: { desiredReplicas?: number; conditions?: { type: string; status: string; reason?: string; message?: string }[] }
}
type Pod = { metadata: object; spec: { nodeName?: string }; status?: { phase?: string } }
const hpaResource = describeResource<Hpa>({
  ...{ group: 'autoscaling', version: 'v2', kind: 'HorizontalPodAutoscaler', plural: 'horizontalpodautoscalers', scope: 'Namespaced' },
})
const podResource = describeResource<Pod>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', scope: 'Namespaced' })
const deploymentResource = describeResource<{ spec: { replicas?: number } }>({
  ...{ group: 'apps', version: 'v1', kind: 'Deployment', plural: 'deployments', scope: 'Namespaced' },
})
const metricsPath = '/apis/external.metrics.k8s.io/v1beta1/namespaces/shop'

let chart: InstalledChart
let client: Client
let stacks: StackFixture

before(async () => {
  if (skip) return
  chart = await InstalledChart.start({
    externalMetrics: { enabled: true },
    pools: {},
    warmWorkers: {
      edge: {
        autoscaling: { minReplicas: 1, maxReplicas: 3, scaleDownStabilizationSeconds: 0 },
        resources: { requests: { cpu: '10m', memory: '64Mi' } },
      },
    },
  })
  client = chart.cluster.client
  stacks = new StackFixture(client, 'shop')
})
after(async () => await chart?.close())

const metricOf = async (metric: string, pool: string): Promise<string | undefined> => {
  const list = JSON.parse(await chart.kubectl('get', '--raw', `${metricsPath}/${metric}?labelSelector=pool%3D${pool}`)) as {
    items: { value: string }[]
  }
  return list.items[0]?.value
}
const conditionsOf = ({ status }: KubeObject<Hpa>) =>
  (status?.conditions ?? []).map(({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`).join('; ')

/** Waits for the size that the HPA wants; its conditions are in the error. */
async function untilDesired(name: string, namespace: string, replicas: number): Promise<void> {
  let last: KubeObject<Hpa> | undefined
  await eventually(
    async () => {
      last = await client.resource(hpaResource).getOrUndefined(name, { namespace })
      return last?.status?.desiredReplicas === replicas
    },
    `HPA ${name} to want ${replicas} replicas`,
    waitMs,
  ).catch(error => {
    throw new Error(`${error.message}; it wants ${last?.status?.desiredReplicas}: ${last && conditionsOf(last)}`)
  })
}

test('kube-apiserver serves the metrics for users who may read them, through every controller', { skip, timeout: 900_000 }, async () => {
  await chart.kubectl('wait', '--for=condition=Available', 'apiservice/v1beta1.external.metrics.k8s.io', '--timeout=60s')
  equal(await metricOf('oarlock_runs_queued', 'edge'), '0')
  match(await chart.kubectl('api-resources', '--api-group=external.metrics.k8s.io'), /oarlock_pool_desired_workers/)
  const rejection = async (path: string, ...args: string[]) =>
    await chart.kubectl('get', '--raw', `${metricsPath}/${path}`, ...args).then(
      () => '',
      (error: { stderr: string }) => error.stderr,
    )
  match(
    await rejection('oarlock_runs_queued', '--as=bob'),
    /cannot list resource "oarlock_runs_queued" in API group "external.metrics.k8s.io"/,
  )
  match(await rejection('queue'), /metric "queue" of external.metrics.k8s.io not found/)
  match(await rejection('oarlock_runs_queued?labelSelector=pool%3Degde'), /no WorkerPool matches .* edge/)
  await chart.kubectl('create', 'rolebinding', 'carl', '--clusterrole=oarlock:external-metrics-reader', '--user=carl', '--namespace=shop')
  await eventually(async () => (await rejection('oarlock_runs_queued', '--as=carl')) === '', 'the role to be in effect')
  // The deletion of a namespace discovers every API.
  await chart.kubectl('create', 'namespace', 'short-lived')
  await chart.kubectl('delete', 'namespace', 'short-lived', '--timeout=60s')
})

test('an HPA starts workers for queued Runs, and a busy worker that is removed completes its Run', {
  skip,
  timeout: 1_800_000,
}, async t => {
  const command = (seconds: number) => ({
    ...{ engine: 'command' as const, pool: 'edge', command: { apply: ['sleep', String(seconds)] } },
    source: { inline: { files: { 'run.sh': '' } } },
  })
  const names = ['short-1', 'short-2', 'long']
  for (const name of names) await stacks.create(name, command(name === 'long' ? 180 : 45))
  const startedMs = Date.now()
  await untilDesired('oarlock-workers-edge', 'oarlock-system', 3)
  const run = await stacks.untilRun('long', 'the start', ({ status }) => status?.phase === 'Applying', waitMs)
  // The ReplicaSet removes this Pod first, whatever the others do.
  const pods = client.resource(podResource)
  const busyPod = (await client.resource(workerResource).get(run.spec.workerName!)).status?.host ?? ''
  const annotations = { 'controller.kubernetes.io/pod-deletion-cost': '-1000' }
  await pods.patch(busyPod, { metadata: { annotations } } as object, { type: 'merge', namespace: 'oarlock-system' })
  await untilDesired('oarlock-workers-edge', 'oarlock-system', 1)
  const isTerminating = async () =>
    (await pods.getOrUndefined(busyPod, { namespace: 'oarlock-system' }))?.metadata.deletionTimestamp !== undefined
  await eventually(isTerminating, 'the Pod of the busy worker to be deleted', waitMs)
  const during = (await stacks.runsOf('long')).map(({ status }) => status?.phase)
  deepEqual(during, ['Applying'], 'it was removed during its Run')
  const ended = await stacks.untilRun('long', 'the end', isEnded, waitMs)
  equal(ended.status?.phase, 'Succeeded')
  for (const name of names) equal((await stacks.runsOf(name)).length, 1, `${name} ran once`)
  t.diagnostic(`scaled to 3, back to 1, and completed after ${Math.round((Date.now() - startedMs) / 1_000)} s`)
})

test('30 busy one-shot workers under an HPA never become 900', { skip, timeout: 1_800_000 }, async () => {
  const pool = { metadata: { name: 'fleet' }, spec: { mode: 'External', lifecycle: 'OneShot', max: 1_000 } } as WorkerPool
  await client.resource(workerPoolResource).create(pool)
  const workers = new ScriptedWorkers(client, 2_000)
  workers.script = () => 'block'
  try {
    for (let i = 0; i < 30; i++) await workers.start(pool, `fleet-${i}`)
    const spec = { engine: 'command' as const, pool: 'fleet', command: { apply: ['true'] }, source: { inline: { files: { a: '' } } } }
    for (let i = 0; i < 30; i++) await stacks.create(`fleet-${i}`, spec)
    await eventually(async () => (await metricOf('oarlock_pool_busy_workers', 'fleet')) === '30', '30 workers to be busy', waitMs)
    await startPods('fleet', 30)

    const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'fleet' }
    const desired = { name: 'oarlock_pool_desired_workers', selector: { matchLabels: { pool: 'fleet' } } }
    const replicas = async () => (await client.resource(deploymentResource).get('fleet', { namespace: 'shop' })).spec.replicas
    const hpa = async (name: string, scaleTargetRef: object, metric: object, target: object, behavior: object) =>
      await client.resource(hpaResource).create({
        metadata: { name, namespace: 'shop' },
        spec: {
          scaleTargetRef,
          minReplicas: 1,
          maxReplicas: 1_000,
          behavior,
          metrics: [{ type: 'External', external: { metric, target } }],
        },
      })
    const average = { type: 'AverageValue', averageValue: '1' }
    const fast = { policies: [{ type: 'Pods', value: 1_000, periodSeconds: 15 }] }
    await hpa('right', target, desired, average, { scaleUp: { ...fast, tolerance: '0' }, scaleDown: { tolerance: '0' } })
    await untilDesired('right', 'shop', 30)
    for (let i = 0; i < 4; i++) {
      await sleep(syncMs)
      equal(await replicas(), 30)
    }
    // One more Run is one more worker, although 31 is within the default tolerance of 30.
    await stacks.create('fleet-30', spec)
    await untilDesired('right', 'shop', 31)
    await eventually(async () => (await replicas()) === 31, 'the Deployment to be scaled')
    await client.resource(hpaResource).delete('right', { namespace: 'shop' })

    // The same without the field: the Run waits.
    await client.resource(deploymentResource).patch('fleet', { spec: { replicas: 30 } }, { type: 'merge', namespace: 'shop' })
    await eventually(
      async () => (await client.resource(podResource).listAll({ namespace: 'shop', labelSelector: 'app=fleet' })).items.length === 30,
      '30 Pods',
    )
    await hpa('tolerant', target, desired, average, { scaleUp: fast })
    await untilDesired('tolerant', 'shop', 30)
    await sleep(3 * syncMs)
    equal(await replicas(), 30)
    await client.resource(hpaResource).delete('tolerant', { namespace: 'shop' })

    // The misuse that docs/autoscaling.md warns of, of a target that starts no Pods.
    const scaled = await createScaleTarget()
    await hpa('misused', scaled, { ...desired, name: 'oarlock_pool_busy_workers' }, { type: 'Value', value: '1' }, { scaleUp: fast })
    await untilDesired('misused', 'shop', 900)
  } finally {
    await workers.close()
  }
})

/** A Deployment whose Pods run without a node: this test reports their status in place of a kubelet. */
async function startPods(name: string, replicas: number): Promise<void> {
  const labels = { app: name }
  await chart.apply({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'shop' } },
    spec: {
      ...{ replicas, selector: { matchLabels: labels } },
      template: { metadata: { labels }, spec: { schedulerName: 'none', containers: [{ name: 'worker', image: 'none' }] } },
    },
  })
  const pods = client.resource(podResource)
  const listed = async () => (await pods.listAll({ namespace: 'shop', labelSelector: `app=${name}` })).items
  const created = await eventually(listed, items => items.length === replicas)
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: new Date().toISOString() }] }
  for (const { metadata } of created) await pods.patchStatus(metadata.name, { status }, { namespace: 'shop' })
}

/** An object with the subresource `scale`, whose Pods are those of the Deployment `fleet`. */
async function createScaleTarget(): Promise<object> {
  const any = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.status.selector' }
  await chart.apply({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'fleets.test.oarlock.dev' },
    spec: {
      ...{ group: 'test.oarlock.dev', scope: 'Namespaced', names: { plural: 'fleets', singular: 'fleet', kind: 'Fleet' } },
      versions: [
        {
          ...{ name: 'v1', served: true, storage: true, subresources: { scale, status: {} } },
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: any, status: any } } },
        },
      ],
    },
  })
  await chart.kubectl('wait', '--for=condition=Established', 'crd/fleets.test.oarlock.dev', '--timeout=60s')
  const target = { apiVersion: 'test.oarlock.dev/v1', kind: 'Fleet' }
  await eventually(
    async () =>
      await chart
        .apply({ ...target, metadata: { name: 'fleet', namespace: 'shop' }, spec: { replicas: 30 } })
        .then(() => true)
        .catch(() => false),
    'the kind to be served',
  )
  const patch = JSON.stringify({ status: { replicas: 30, selector: 'app=fleet' } })
  await chart.kubectl('patch', 'fleet', 'fleet', '--namespace=shop', '--subresource=status', '--type=merge', `--patch=${patch}`)
  return { ...target, name: 'fleet' }
}
