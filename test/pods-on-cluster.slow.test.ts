/**
 * Worker Pods on a real cluster: kubelets, a scheduler, a garbage collector. What a program in one may do, Pods that do not start, and Pods that end
 * before their Run: by the memory limit of a container, the Eviction API, a Pod of higher priority, and a node that is gone.
 */
import { deepEqual, equal, match, notEqual, rejects } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  labels,
  type Run,
  runResource,
  type WorkerPool,
  type WorkerPoolSpec,
  workerPoolResource,
  workerResource,
} from '../src/api/index.ts'
import type { Client } from '../src/kubernetes/client/index.ts'
import { describeResource, findCondition } from '../src/kubernetes/object/index.ts'
import { InstalledChart, installedChartMissing, storageless } from './cluster/installed-chart.ts'
import { oarlockImage } from './cluster/oarlock-image.ts'
import { attack } from './cluster/pod-attack.ts'
import { eventually } from './support/eventually.ts'
import { isReady, StackFixture } from './support/stacks.ts'

const skip = installedChartMissing() ?? false
/** On two slow cores, where other tests run at the same time. */
const waitMs = 240_000

type Pod = { spec: { serviceAccountName?: string; nodeName?: string }; status?: { phase?: string } }
const core = { group: '', version: 'v1', scope: 'Namespaced' } as const
const podResource = describeResource<Pod>({ ...core, kind: 'Pod', plural: 'pods' })
const quotaResource = describeResource<{ spec: object; status?: { hard?: object } }>({
  ...core,
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
})
const budgetResource = describeResource<{ spec: object }>({
  ...{ group: 'policy', version: 'v1', kind: 'PodDisruptionBudget', plural: 'poddisruptionbudgets', scope: 'Namespaced' },
})

let chart: InstalledChart
let client: Client
let stacks: StackFixture

before(async () => {
  if (skip) return
  const resources = { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '448Mi' } }
  // Not on the node that is lost.
  const nodeSelector = { 'kubernetes.io/hostname': 'n1' }
  const values = {
    // Short, so that a node that is gone is dealt with soon.
    controllers: { replicas: 1, workerLeaseDuration: '20s', nodeSelector },
    stores: { ...storageless, nodeSelector },
    joinService: { ...storageless, nodeSelector },
    workerAccounts: [{ namespace: 'shop', name: 'oarlock-worker-deploy' }],
    pools: { default: { spec: { max: 2, idleTimeout: '5s' }, resources } },
  }
  chart = await InstalledChart.start(values, [], 2)
  client = chart.cluster.client
  stacks = new StackFixture(client, 'shop')
})
after(async () => await chart?.close())

/** A pool with the template of the chart, whose worker and PodSpec are changed. */
async function makePool(
  name: string,
  spec: Partial<WorkerPoolSpec>,
  { worker: ownContainer = {}, pod = {} }: { worker?: object; pod?: object } = {},
): Promise<WorkerPool> {
  const pools = client.resource(workerPoolResource)
  const { template } = (await pools.get('default')).spec
  const [worker, ...others] = template!.spec.containers as object[]
  const changed = { ...template!, spec: { ...template!.spec, ...pod, containers: [{ ...worker, ...ownContainer }, ...others] } }
  return await pools.create({ metadata: { name }, spec: { mode: 'Pod', max: 2, template: changed, ...spec } })
}

const runWith = (stack: string, isWanted: (run: Run) => boolean, what: string): Promise<Run> =>
  eventually(async () => (await stacks.runsOf(stack)).find(isWanted), what, waitMs)

const running = (stack: string) => runWith(stack, ({ status }) => status?.phase === 'Applying', `a Run of ${stack} to apply`)

test('a program in a worker Pod gets the Secret of its Stack, and nothing else with the token of its worker', {
  skip,
  timeout: 900_000,
}, async () => {
  const login = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'login', namespace: 'shop' }, stringData: { password: 'of-web' } }
  await chart.apply(login)
  // Its Run is that of another worker.
  await stacks.create('other', { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } })
  await stacks.until('other', 'to be Ready', isReady, waitMs)
  await stacks.create('attack', {
    engine: 'command',
    source: { inline: { files: { 'attack.js': `(${attack})()` } } },
    command: { apply: ['node', 'attack.js'] },
    isolation: { level: 'Pod' },
    env: [{ name: 'password', secretKeyRef: { name: 'login', key: 'password' } }],
  })
  await stacks.until('attack', 'to be Ready', isReady, waitMs)
  const output = async (name: string) => {
    const text = await chart.kubectl('get', 'secret', 'attack-outputs', '-n', 'shop', '-o', `jsonpath={.data.${name}}`)
    return JSON.parse(Buffer.from(text, 'base64').toString())
  }
  equal(await output('password'), true)
  const {
    'status of its own Worker': ofWorker,
    'status of its own Run': ofRun,
    ...others
  } = (await output('codes')) as Record<string, number>
  deepEqual([ofWorker, ofRun], [200, 200])
  deepEqual([...new Set(Object.values(others))], [403], JSON.stringify(others))
  const secrets = await chart.kubectl('get', 'secrets', '-A', '-o', 'jsonpath={range .items[*]}{.type}{"\\n"}{end}')
  equal(secrets.includes('oarlock.dev/worker'), false, secrets)
})

/** Holds memory in many processes that are smaller than the worker, so that the kernel ends that. */
const holdMemory = 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (head -c 40M /dev/zero | tail -c 40M | sleep 600) & done; wait'

test('OOMKilled: the Run is Lost with that reason, and names the Pod', { skip, timeout: 900_000 }, async () => {
  await stacks.create('memory', {
    engine: 'command',
    source: { inline: { files: { a: '' } } },
    command: { apply: ['sh', '-c', holdMemory] },
    retry: { max: '1h' },
  })
  const { spec, status } = await runWith('memory', run => ['Lost', 'Failed'].includes(run.status?.phase ?? ''), 'the Run to end')
  deepEqual([status?.phase, status?.reason], ['Lost', 'WorkerOutOfMemory'])
  match(status?.message ?? '', new RegExp(`Pod oarlock-system/${spec.workerName} exited with code 137: OOMKilled`))
  // Its Runs end first.
  const { status: shown } = await eventually(
    async () => await client.resource(workerResource).get(spec.workerName!),
    worker => worker.status?.phase === 'Failed',
    waitMs,
  )
  deepEqual([shown?.reason, shown?.exitCode], ['WorkerOutOfMemory', 137])
  await stacks.patch('memory', { spec: { suspend: true } })
  // Its Pod remains with its log, until its Worker is deleted.
  await client.resource(workerResource).delete(spec.workerName!)
  await eventually(
    async () => (await client.resource(podResource).getOrUndefined(spec.workerName!, { namespace: 'oarlock-system' })) === undefined,
    'the garbage collector to delete the Pod',
    waitMs,
  )
})

const trivial = { source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } }
const resource = (seconds: number) =>
  `resource "terraform_data" "x" {\n  input = ${seconds}\n  provisioner "local-exec" {\n    command = "sleep ${seconds}"\n  }\n}\n`

test('evicted: the Run is Lost with that reason, its state is unlocked, and the next Run succeeds', {
  skip,
  timeout: 900_000,
}, async () => {
  await stacks.create('evicted', { engine: 'opentofu', source: { inline: { files: { 'main.tf': resource(600) } } } })
  const { metadata, spec } = await running('evicted')
  // The next Run follows the loss immediately: it must not last as long.
  await stacks.patch('evicted', { spec: { source: { inline: { files: { 'main.tf': resource(0) } } } } })
  const eviction = {
    ...{ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: spec.workerName, namespace: 'oarlock-system' } },
    // Shorter than the worker needs to interrupt the engine: it is killed.
    deleteOptions: { gracePeriodSeconds: 1 },
  }
  const path = `/api/v1/namespaces/oarlock-system/pods/${spec.workerName}/eviction`
  const evict = async () => await client.request({ method: 'POST', path, body: eviction })
  const budgets = client.resource(budgetResource)
  const key = ['oarlock-busy-default', { namespace: 'oarlock-system' }] as const
  const { uid } = (await budgets.get(...key)).metadata
  await rejects(evict(), /disruption budget/)
  await budgets.delete(...key)
  const replaced = await eventually(() => budgets.getOrUndefined(...key), 'the deleted budget to be created again', waitMs)
  notEqual(replaced.metadata.uid, uid)
  // As by the kubelet and by taints, which do not ask it: before it is created again.
  const isEvicted = async () => {
    await budgets.delete(...key).catch(() => {})
    return await evict().then(
      () => true,
      () => false,
    )
  }
  await eventually(isEvicted, 'the eviction without a budget', waitMs)
  const isLost = (run: Run) => run.metadata.name === metadata.name && run.status?.phase === 'Lost'
  const { status } = await runWith('evicted', isLost, 'the Run to be Lost')
  equal(status?.reason, 'Evicted')
  match(status?.message ?? '', new RegExp(`Pod oarlock-system/${spec.workerName}: EvictionByEvictionAPI`))
  await stacks.until('evicted', 'to be Ready', isReady, waitMs)
})

test('a Pod of a user with the name and the labels of a busy worker does not end its Run', { skip, timeout: 900_000 }, async () => {
  await stacks.create('copied', { engine: 'opentofu', source: { inline: { files: { 'main.tf': resource(20) } } } })
  const { spec } = await running('copied')
  const { uid } = (await client.resource(workerResource).get(spec.workerName!)).metadata
  const owner = { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Worker', name: spec.workerName!, uid, controller: true }
  const metadata = { name: spec.workerName!, namespace: 'shop', labels: { [labels.pool]: 'default' }, ownerReferences: [owner] }
  const container = { name: 'worker', image: oarlockImage, imagePullPolicy: 'Never', command: ['false'] }
  await chart.apply({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { restartPolicy: 'Never', containers: [container] } })
  const phaseOfCopy = async () => (await client.resource(podResource).get(spec.workerName!, { namespace: 'shop' })).status?.phase
  await eventually(async () => (await phaseOfCopy()) === 'Failed', 'the other Pod to fail', waitMs)
  deepEqual(
    (await stacks.runsOf('copied')).map(({ status }) => status?.phase),
    ['Applying'],
  )
  await stacks.until('copied', 'to be Ready', isReady, waitMs)
  equal((await stacks.runsOf('copied')).length, 1)
  // The garbage collector deletes it with the Worker.
  await chart.kubectl('wait', '--for=delete', `pod/${spec.workerName}`, '-n', 'shop', '--timeout=120s')
})

test('an image that does not exist: pool, Worker and Run name the Pod, and a canceled Run needs none', {
  skip,
  timeout: 900_000,
}, async () => {
  await makePool('images', {}, { worker: { image: 'localhost/oarlock:none' } })
  await stacks.create('images', {
    engine: 'command',
    pool: 'images',
    source: { inline: { files: { a: '' } } },
    command: { apply: ['true'] },
  })
  const run = await runWith('images', ({ status }) => status?.reason === 'WorkerStartFailed', 'the Run to give the reason')
  match(run.status?.message ?? '', /workers of pool images do not start: Pod oarlock-system\/images-\S+: ErrImageNeverPull/)
  const { items } = await client.resource(workerResource).listAll()
  const worker = items.find(({ spec }) => spec.pool === 'images')
  deepEqual([worker?.status?.phase, worker?.status?.reason, worker?.spec.run], ['Pending', 'ImagePullFailed', `shop/${run.metadata.name}`])
  const { status } = await client.resource(workerPoolResource).get('images')
  equal(findCondition(status?.conditions, 'Ready')?.reason, 'ImagePullFailed')
  match(await chart.kubectl('describe', 'run', run.metadata.name, '-n', 'shop'), /ErrImageNeverPull/)
  await client.resource(runResource).patch(run.metadata.name, { spec: { cancel: true } }, { type: 'merge', namespace: 'shop' })
  await client.resource(workerPoolResource).delete('images')
  const ofPool = async () =>
    (await client.resource(podResource).listAll({ namespace: 'oarlock-system', labelSelector: 'oarlock.dev/pool=images' })).items
  await eventually(async () => (await ofPool()).length === 0, 'the Pod to be deleted with its pool', waitMs)
})

test('the Run of a worker whose pool is deleted finishes, and its Worker and Pod are deleted afterwards', {
  skip,
  timeout: 900_000,
}, async () => {
  await makePool('dropped', {})
  await stacks.create('dropped', {
    engine: 'command',
    pool: 'dropped',
    source: { inline: { files: { a: '' } } },
    command: { apply: ['sleep', '15'] },
  })
  const run = await runWith('dropped', ({ status }) => status?.phase === 'Applying', 'the Run to apply')
  await client.resource(workerPoolResource).delete('dropped')
  await runWith(
    'dropped',
    ({ metadata, status }) => metadata.uid === run.metadata.uid && status?.phase === 'Succeeded',
    'the Run to succeed',
  )
  const left = async () => (await client.resource(workerResource).listAll()).items.filter(({ spec }) => spec.pool === 'dropped')
  await eventually(async () => (await left()).length === 0, 'the Worker to be deleted', waitMs)
})

test('a Pod in the namespace of its Stack, which a quota forbids at first', { skip, timeout: 900_000 }, async () => {
  const quotas = client.resource(quotaResource)
  await quotas.create({ metadata: { name: 'none', namespace: 'shop' }, spec: { hard: { pods: '0' } } })
  await eventually(async () => (await quotas.get('none', { namespace: 'shop' })).status?.hard, 'the quota to be in effect', waitMs)
  await chart.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'oarlock-worker-deploy', namespace: 'shop' } })
  await makePool('stacks', { podNamespace: 'Stack' })
  const spec = { engine: 'command', pool: 'stacks', serviceAccountName: 'oarlock-worker-deploy' } as const
  await stacks.create('own', { ...spec, source: { inline: { files: { a: '' } } }, command: { apply: ['sleep', '5'] } })
  const run = await runWith('own', ({ status }) => status?.reason === 'WorkerStartFailed', 'the Run to give the reason')
  match(run.status?.message ?? '', /Pod shop\/stacks-\S+: .*exceeded quota: none/)
  const poolStatus = async () => (await client.resource(workerPoolResource).get('stacks')).status
  await eventually(async () => (await poolStatus())?.problem === 'shop: QuotaExceeded', 'the pool to name the namespace', waitMs)
  match(
    findCondition((await poolStatus())?.conditions, 'Ready')?.message ?? '',
    /^Pods do not start in namespace shop: QuotaExceeded: Pod shop\//,
  )
  await quotas.delete('none', { namespace: 'shop' })
  const { spec: assigned } = await running('own')
  const pod = await client.resource(podResource).get(assigned.workerName!, { namespace: 'shop' })
  equal(pod.spec.serviceAccountName, 'oarlock-worker-deploy')
  await stacks.until('own', 'to be Ready', isReady, waitMs)
  equal((await poolStatus())?.problem, undefined)
  await eventually(
    async () => (await client.resource(podResource).listAll({ namespace: 'shop' })).items.length === 0,
    'the Pod to be deleted with its Worker',
    waitMs,
  )
})

test('a Pod that no node can run: pool and Run report it, and its capacity returns with a canceled Run', {
  skip,
  timeout: 900_000,
}, async () => {
  await makePool('nowhere', { max: 1, idleTimeout: '5s' }, { pod: { nodeSelector: { zone: 'moon' } } })
  await stacks.create('nowhere', { engine: 'command', pool: 'nowhere', ...trivial })
  const run = await runWith('nowhere', ({ status }) => status?.reason === 'WorkerStartFailed', 'the Run to give the reason')
  match(run.status?.message ?? '', /Pod oarlock-system\/nowhere-\S+: Unschedulable: .*didn't match Pod's node affinity\/selector/)
  const pool = async () => (await client.resource(workerPoolResource).get('nowhere')).status
  equal(findCondition((await pool())?.conditions, 'Ready')?.reason, 'Unschedulable')
  await client.resource(runResource).patch(run.metadata.name, { spec: { cancel: true } }, { type: 'merge', namespace: 'shop' })
  await stacks.patch('nowhere', { spec: { suspend: true } })
  const isFree = async () => {
    const { items } = await client.resource(podResource).listAll({ namespace: 'oarlock-system', labelSelector: 'oarlock.dev/pool=nowhere' })
    return items.length === 0 && (await pool())?.starting === 0
  }
  await eventually(isFree, 'the Pod to be withdrawn', waitMs)
})

test('preempted by a Pod of higher priority: the Run is Lost with that reason, and the next one succeeds', {
  skip,
  timeout: 900_000,
}, async () => {
  const pod = { nodeSelector: { 'kubernetes.io/hostname': 'n2' }, terminationGracePeriodSeconds: 1 }
  await makePool('low', {}, { worker: { resources: { requests: { cpu: '1500m' } } }, pod })
  await stacks.create('preempted', { engine: 'opentofu', pool: 'low', source: { inline: { files: { 'main.tf': resource(600) } } } })
  const { metadata, spec } = await running('preempted')
  await stacks.patch('preempted', { spec: { source: { inline: { files: { 'main.tf': resource(0) } } } } })
  const high = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'high' }, value: 1_000_000 }
  const container = { name: 'a', image: oarlockImage, imagePullPolicy: 'Never', command: ['sleep', '600'] }
  const other = {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'other', namespace: 'shop' } },
    spec: {
      ...{ priorityClassName: 'high', nodeSelector: pod.nodeSelector, terminationGracePeriodSeconds: 0 },
      containers: [{ ...container, resources: { requests: { cpu: '1' } } }],
    },
  }
  await chart.apply(high)
  await chart.apply(other)
  const isLost = (run: Run) => run.metadata.name === metadata.name && run.status?.phase === 'Lost'
  const { status } = await runWith('preempted', isLost, 'the Run to be Lost')
  equal(status?.reason, 'Preempted')
  match(status?.message ?? '', new RegExp(`Pod oarlock-system/${spec.workerName}: PreemptionByScheduler`))
  await chart.kubectl('delete', 'pod', 'other', '-n', 'shop')
  await stacks.until('preempted', 'to be Ready', isReady, waitMs)
})

// Last: the node does not come back.
test('a node that is gone: the Run is Lost when its Lease has expired, and the next one continues from its state on another node', {
  skip,
  timeout: 900_000,
}, async () => {
  await chart.kubectl('cordon', 'n1')
  const files = (seconds: number) => ({ 'main.tf': `resource "terraform_data" "first" {\n  input = 1\n}\n${resource(seconds)}` })
  await stacks.create('gone', { engine: 'opentofu', source: { inline: { files: files(600) } } })
  const { metadata, spec } = await running('gone')
  await stacks.patch('gone', { spec: { source: { inline: { files: files(0) } } } })
  const pod = await client.resource(podResource).get(spec.workerName!, { namespace: 'oarlock-system' })
  equal(pod.spec.nodeName, 'n2')
  await chart.kubectl('uncordon', 'n1')
  await chart.cluster.nodes[1]!.stop()
  await chart.kubectl('delete', 'node', 'n2')
  const isLost = (run: Run) => run.metadata.name === metadata.name && run.status?.phase === 'Lost'
  const { status } = await runWith('gone', isLost, 'the Run to be Lost')
  match(status?.reason ?? '', /^(NodeLost|WorkerLost)$/)
  match(status?.message ?? '', new RegExp(spec.workerName!))
  await stacks.until('gone', 'to be Ready', isReady, waitMs)
  // The garbage collector of Pods removes what the node cannot confirm, and Oarlock the Worker.
  const isRemoved = async () => (await client.resource(workerResource).getOrUndefined(spec.workerName!)) === undefined
  await eventually(isRemoved, 'the lost Worker to be deleted', waitMs)
})
