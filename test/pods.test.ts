/**
 * Pools of mode Pod against the embedded server, and against a real kube-apiserver where one was built. There is no kubelet: the test
 * writes what a kubelet would say about each Pod, and registers the worker that would run in it.
 */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Registry } from 'prom-client'
import {
  labels,
  oarlockResources,
  type Run,
  runResource,
  stackResource,
  systemNamespace,
  type WorkerPool,
  workerPoolResource,
  workerResource,
} from '../src/api/index.ts'
import { addDispatchController, type PoolDriver } from '../src/controllers/dispatch/index.ts'
import {
  type Client,
  createClient,
  installKinds,
  leaseResource,
  namespaceResource,
  secretResource,
} from '../src/kubernetes/client/index.ts'
import { Manager } from '../src/kubernetes/controller/index.ts'
import { describeResource, findCondition, type KubeObject, rfc3339, rfc3339Micro } from '../src/kubernetes/object/index.ts'
import { startServer } from '../src/kubernetes/server/index.ts'
import { startPeer, whyNoPeer } from './conformance/peer.ts'
import { eventually } from './support/eventually.ts'

type PodBody = { spec?: { containers?: { env?: { name: string; value?: string }[] }[] }; status?: object }
const core = { group: '', version: 'v1', scope: 'Namespaced' } as const
const podResource = describeResource<PodBody>({ ...core, kind: 'Pod', plural: 'pods' })
const quotaResource = describeResource<{ spec?: object; status?: object }>({ ...core, kind: 'ResourceQuota', plural: 'resourcequotas' })

const namespace = 'builds'
const noProcesses: PoolDriver = { start: async () => undefined, running: () => [], stop: () => undefined, listen: () => undefined }

type Target = { client: Client; close(): Promise<void> }

async function embedded(): Promise<Target> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-pods-'))
  const server = await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } })
  const client = await createClient({ kubeconfig: server.kubeconfigPath })
  const close = async () => {
    await client.close()
    await server.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
  return { client, close }
}

async function kubernetes(): Promise<Target> {
  const peer = await startPeer()
  const client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
  const close = async () => {
    await client.close()
    await peer.close()
  }
  return { client, close }
}

for (const [target, start, skip] of [
  ['the embedded server', embedded, undefined],
  ['kube-apiserver', kubernetes, whyNoPeer()],
] as const) {
  describe(`workers as Pods, on ${target}`, { skip: skip ?? false }, () => {
    let rig: Target
    let client: Client
    let manager: Manager
    let registry: Registry
    /** The clock of the controller runs ahead of this machine's by so much. */
    let aheadMs = 0

    async function startController(): Promise<void> {
      registry = new Registry()
      manager = new Manager({ client })
      const podWorkers = {
        environment: { OARLOCK_SERVER: 'https://oarlock.example:7466' },
        credentialOf: async (_: WorkerPool, name: string) => `token-of-${name}`,
      }
      addDispatchController(manager, {
        poolDriver: noProcesses,
        podWorkers,
        registry,
        leaseDurationMs: 60_000,
        nowMs: () => Date.now() + aheadMs,
      })
      await manager.start()
    }

    before(async () => {
      rig = await start()
      client = rig.client
      await installKinds(client, oarlockResources)
      for (const name of [systemNamespace, namespace])
        await client.resource(namespaceResource).apply({ metadata: { name } }, { force: true })
      await startController()
    })
    after(async () => {
      await manager?.stop({ graceMs: 2_000 })
      await rig?.close()
    })

    async function makePool(name: string, spec: Partial<WorkerPool['spec']> = {}): Promise<WorkerPool> {
      const template = { spec: { containers: [{ name: 'worker', image: 'oarlock:test' }] } }
      return await client.resource(workerPoolResource).create({ metadata: { name }, spec: { mode: 'Pod', namespace, template, ...spec } })
    }

    /** A Run that waits, and the Stack that it is of. */
    async function queueRun(name: string, pool: string): Promise<Run> {
      const spec = { engine: 'command' as const, source: { inline: { files: { a: '' } } }, command: { apply: ['true'] }, suspend: true }
      const stack = await client.resource(stackResource).create({ metadata: { name, namespace }, spec })
      return await client.resource(runResource).create({
        metadata: { name: `${name}-1`, namespace },
        spec: {
          ...{ type: 'Apply', epoch: 1, revision: 'r', inputsDigest: 'i', reason: 'NewGeneration', pool, priority: 0, stack: spec },
          stackRef: { name, uid: stack.metadata.uid, generation: 1 },
        },
      })
    }

    const podsOf = async (pool: string) => {
      const { items } = await client.resource(podResource).listAll({ namespace, labelSelector: `${labels.pool}=${pool}` })
      return items.filter(({ metadata }) => !metadata.deletionTimestamp).sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    }
    const onePod = (pool: string, isIt: (pod: KubeObject<PodBody>) => boolean = () => true) =>
      eventually(async () => (await podsOf(pool)).find(isIt), `a Pod of ${pool}`)
    const readyOf = async (pool: string) => findCondition((await client.resource(workerPoolResource).get(pool)).status?.conditions, 'Ready')
    const cause = (pool: string, reason: string) =>
      eventually(async () => {
        const ready = await readyOf(pool)
        return ready?.reason === reason ? ready : undefined
      }, `pool ${pool} to say ${reason}`)

    /** What a kubelet says about a Pod. */
    const kubelet = (pod: KubeObject<PodBody>, status: object) =>
      client.resource(podResource).patchStatus(pod.metadata.name, { status }, { namespace })
    const waiting = (reason: string, message: string) => ({
      phase: 'Pending',
      containerStatuses: [{ ...container, state: { waiting: { reason, message } } }],
    })
    const container = { name: 'worker', image: 'oarlock:test', imageID: '', ready: false, restartCount: 0 }

    /** The worker in a Pod registers, does the Run that it is given, and ends; and so does its Pod. */
    async function playWorker(pod: KubeObject<PodBody>): Promise<Run> {
      const { name } = pod.metadata
      const pool = pod.metadata.labels![labels.pool]!
      await kubelet(pod, {
        phase: 'Running',
        containerStatuses: [{ ...container, ready: true, state: { running: { startedAt: rfc3339(Date.now()) } } }],
      })
      await client.resource(leaseResource).create({
        metadata: { name, namespace: systemNamespace, labels: { [labels.pool]: pool } },
        spec: { holderIdentity: name, leaseDurationSeconds: 60, renewTime: rfc3339Micro(Date.now()) },
      })
      const workers = client.resource(workerResource)
      await workers.create({ metadata: { name, labels: { [labels.pool]: pool } }, spec: { pool, slots: 1, lifecycle: 'OneShot' } })
      await workers.patchStatus(name, { status: { phase: 'Ready' } })
      const runs = client.resource(runResource)
      const given = await eventually(async () => {
        return (await runs.listAll({ namespace, fieldSelector: `spec.workerName=${name}` })).items[0]
      }, `${name} to get a Run`)
      const report = (status: object) => runs.patchStatus(given.metadata.name, { status }, { namespace })
      await report({ phase: 'Preparing' })
      const done = await report({ phase: 'Succeeded', finishedAt: rfc3339(Date.now()) })
      await workers.delete(name)
      await client.resource(leaseResource).delete(name, { namespace: systemNamespace })
      const finishedAt = rfc3339(Date.now())
      await kubelet(pod, {
        phase: 'Succeeded',
        containerStatuses: [
          { ...container, state: { terminated: { exitCode: 0, reason: 'Completed', finishedAt, startedAt: finishedAt } } },
        ],
      })
      return done
    }

    test('a Run that waits gets a Pod of its own, which is told what it is, belongs to its pool, and is cleared away', async () => {
      const pool = await makePool('plain')
      await queueRun('plain', 'plain')
      const pod = await onePod('plain')
      equal(pod.metadata.name, `plain-${pool.metadata.uid.slice(0, 5)}-1`)
      deepEqual(
        pod.metadata.ownerReferences?.map(({ kind, name, uid, controller }) => [kind, name, uid, controller]),
        [['WorkerPool', 'plain', pool.metadata.uid, true]],
      )
      const env = Object.fromEntries(pod.spec!.containers![0]!.env!.map(({ name, value }) => [name, value]))
      deepEqual(
        [env.OARLOCK_WORKER_NAME, env.OARLOCK_POOL, env.OARLOCK_SERVER],
        [pod.metadata.name, 'plain', 'https://oarlock.example:7466'],
      )
      const secret = await eventually(
        () => client.resource(secretResource).getOrUndefined(pod.metadata.name, { namespace }),
        'its credential',
      )
      deepEqual(
        [Buffer.from(secret.data!.token!, 'base64').toString(), secret.metadata.ownerReferences?.[0]?.uid],
        [`token-of-${pod.metadata.name}`, pod.metadata.uid],
      )

      equal((await playWorker(pod)).status?.phase, 'Succeeded')
      const { status } = await eventually(async () => {
        const present = await client.resource(workerPoolResource).get('plain')
        return present.status?.workers === 0 && present.status.queued === 0 ? present : undefined
      }, 'an empty pool')
      deepEqual([status?.started, status?.desired, (await podsOf('plain')).length], [1, 0, 1])
      aheadMs += 61_000
      await client.resource(workerPoolResource).patch('plain', { spec: { min: 0, max: 3 } }, { type: 'merge' })
      await eventually(async () => (await podsOf('plain')).length === 0, 'the Pod to be removed')
    })

    test('ImagePullBackOff: the pool says so at once, makes no second Pod, and goes on when the image is there', async () => {
      await makePool('images')
      await queueRun('images', 'images')
      const pod = await onePod('images')
      await kubelet(pod, waiting('ImagePullBackOff', 'Back-off pulling image "oarlock:test"'))
      const ready = await cause('images', 'ImagePullFailed')
      match(ready.message, /ImagePullBackOff: Back-off pulling image "oarlock:test"/)
      equal((await podsOf('images')).length, 1)
      await playWorker(pod)
      await cause('images', 'Ready')
    })

    test('a quota that is used up: told as such, tried again after a while, and no number is used twice', async () => {
      const quotas = client.resource(quotaResource)
      const hard = { pods: String((await client.resource(podResource).listAll({ namespace })).items.length) }
      await quotas.create({ metadata: { name: 'few', namespace }, spec: { hard } })
      // On a cluster the controller manager does this; the embedded server by itself.
      await quotas.patchStatus('few', { status: { hard, used: hard } }, { namespace })
      const pool = await makePool('poor')
      await queueRun('poor', 'poor')
      match((await cause('poor', 'QuotaExceeded')).message, /exceeded quota: few/)
      equal((await podsOf('poor')).length, 0)
      await quotas.delete('few', { namespace })
      aheadMs += 61_000
      await client.resource(workerPoolResource).patch('poor', { spec: { max: 3 } }, { type: 'merge' })
      const pod = await onePod('poor')
      const number = Number(pod.metadata.name.split('-').at(-1))
      ok(number > 1, pod.metadata.name)
      equal(pod.metadata.name, `poor-${pool.metadata.uid.slice(0, 5)}-${number}`)
      await playWorker(pod)
      match(await registry.metrics(), /oarlock_pool_start_failures_total\{pool="poor",reason="QuotaExceeded"\} [1-9]/)
    })

    test('Evicted: another Pod takes its place, with another name', async () => {
      await makePool('crowded')
      await queueRun('crowded', 'crowded')
      const first = await onePod('crowded')
      await kubelet(first, { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' })
      match((await cause('crowded', 'Evicted')).message, /low on resource: memory/)
      aheadMs += 5_000
      await client.resource(workerPoolResource).patch('crowded', { spec: { max: 3 } }, { type: 'merge' })
      const second = await onePod('crowded', ({ metadata }) => metadata.name !== first.metadata.name)
      await playWorker(second)
      await cause('crowded', 'Ready')
      // The one that failed is kept for a while, for whoever wants to know why.
      ok((await podsOf('crowded')).some(({ metadata }) => metadata.name === first.metadata.name))
    })

    test('a restart of the controller strands no slot: the Pod that was starting is known, and gets its Run', async () => {
      await makePool('steady')
      await queueRun('steady', 'steady')
      const pod = await onePod('steady')
      await manager.stop({ graceMs: 2_000 })
      await startController()
      await eventually(async () => {
        const { status } = await client.resource(workerPoolResource).get('steady')
        return status?.starting === 1 && status.queued === 1
      }, 'the pool to be looked at')
      deepEqual(
        (await podsOf('steady')).map(({ metadata }) => metadata.name),
        [pod.metadata.name],
      )
      await playWorker(pod)
      equal((await client.resource(workerPoolResource).get('steady')).status?.started, 1)
    })

    test('a Pod that runs and that no Worker belongs to is ended; one that never registers is given up', async () => {
      await makePool('lost', { startTimeout: '5s' })
      const run = await queueRun('lost', 'lost')
      const pod = await onePod('lost')
      await kubelet(pod, {
        phase: 'Running',
        containerStatuses: [{ ...container, ready: true, state: { running: { startedAt: rfc3339(Date.now()) } } }],
      })
      // Nobody waits for it any more: what is left is a Pod alone.
      await client.resource(runResource).patch(run.metadata.name, { spec: { cancel: true } }, { type: 'merge', namespace })
      aheadMs += 5_000
      await client.resource(workerPoolResource).patch('lost', { spec: { max: 3 } }, { type: 'merge' })
      match((await cause('lost', 'RegistrationFailed')).message, /did not register within 5 s/)
      await eventually(async () => (await podsOf('lost')).length === 0, 'it to be ended')
    })
  })
}
