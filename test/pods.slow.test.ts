/**
 * Pools of mode Pod against the embedded server, and against a real kube-apiserver if one was built. There is no kubelet: the test writes the
 * status of each Pod, and registers the worker that would run in it.
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
import { type Client, createClient, installKinds, leaseResource, namespaceResource } from '../src/kubernetes/client/index.ts'
import { Manager } from '../src/kubernetes/controller/index.ts'
import { describeResource, findCondition, isReason, type KubeObject, rfc3339, rfc3339Micro } from '../src/kubernetes/object/index.ts'
import { startServer } from '../src/kubernetes/server/index.ts'
import { peerMissing, startPeer } from './conformance/peer.ts'
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

for (const [name, start, skip] of [
  ['the embedded server', embedded, undefined],
  ['kube-apiserver', kubernetes, peerMissing()],
] as const) {
  describe(`workers as Pods, on ${name}`, { skip: skip ?? false }, () => {
    let target: Target
    let client: Client
    let manager: Manager
    let registry: Registry
    /** Offset of the controller's clock from the machine's clock. */
    let aheadMs = 0

    async function startController(): Promise<void> {
      registry = new Registry()
      manager = new Manager({ client })
      const podWorkers = { environment: { OARLOCK_SERVER: 'https://oarlock.example:7466' } }
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
      target = await start()
      client = target.client
      await installKinds(client, oarlockResources)
      for (const name of [systemNamespace, namespace])
        await client.resource(namespaceResource).apply({ metadata: { name } }, { force: true })
      await startController()
    })
    after(async () => {
      await manager?.stop({ graceMs: 2_000 })
      await target?.close()
    })

    async function makePool(name: string, spec: Partial<WorkerPool['spec']> = {}): Promise<WorkerPool> {
      const template = { spec: { containers: [{ name: 'worker', image: 'oarlock:test' }] } }
      return await client.resource(workerPoolResource).create({ metadata: { name }, spec: { mode: 'Pod', namespace, template, ...spec } })
    }

    /** Creates a queued Run with its Stack. */
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
    const onePod = (pool: string, isWanted: (pod: KubeObject<PodBody>) => boolean = () => true) =>
      eventually(async () => (await podsOf(pool)).find(isWanted), `a Pod of ${pool}`)
    const readyOf = async (pool: string) => findCondition((await client.resource(workerPoolResource).get(pool)).status?.conditions, 'Ready')
    const readyWith = (pool: string, reason: string) =>
      eventually(async () => {
        const ready = await readyOf(pool)
        return ready?.reason === reason ? ready : undefined
      }, `pool ${pool} to report ${reason}`)

    /** Writes the status of a Pod, as a kubelet does. */
    const kubelet = (pod: KubeObject<PodBody>, status: object) =>
      client.resource(podResource).patchStatus(pod.metadata.name, { status }, { namespace })
    const waiting = (reason: string, message: string) => ({
      phase: 'Pending',
      containerStatuses: [{ ...container, state: { waiting: { reason, message } } }],
    })
    const container = { name: 'worker', image: 'oarlock:test', imageID: '', ready: false, restartCount: 0 }

    /** Plays the worker of a Pod: it registers, executes the Run that it is assigned, and exits; then the Pod ends. */
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
      await workers.patchStatus(name, { status: { phase: 'Ready', reason: null, message: null } })
      const runs = client.resource(runResource)
      const assigned = await eventually(async () => {
        return (await runs.listAll({ namespace, fieldSelector: `spec.workerName=${name}` })).items[0]
      }, `${name} to get a Run`)
      const report = (status: object) => runs.patchStatus(assigned.metadata.name, { status }, { namespace })
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
      }).catch((error: unknown) => {
        // The garbage collector was faster: its Worker is deleted.
        if (!isReason(error, 'NotFound')) throw error
      })
      return done
    }

    test('a queued Run gets its own Pod with environment, credential and owner, which is deleted after it succeeded', async () => {
      const pool = await makePool('plain')
      await queueRun('plain', 'plain')
      const pod = await onePod('plain')
      equal(pod.metadata.name, `plain-${pool.metadata.uid.slice(0, 5)}-1`)
      deepEqual(
        pod.metadata.ownerReferences?.map(({ kind, name, uid, controller }) => [kind, name, uid, controller]),
        [['Worker', pod.metadata.name, (await client.resource(workerResource).get(pod.metadata.name)).metadata.uid, true]],
      )
      const env = Object.fromEntries(pod.spec!.containers![0]!.env!.map(({ name, value }) => [name, value]))
      deepEqual(
        [env.OARLOCK_WORKER_NAME, env.OARLOCK_POOL, env.OARLOCK_SERVER],
        [pod.metadata.name, 'plain', 'https://oarlock.example:7466'],
      )

      equal((await playWorker(pod)).status?.phase, 'Succeeded')
      const { status } = await eventually(async () => {
        const current = await client.resource(workerPoolResource).get('plain')
        return current.status?.workers === 0 && current.status.queued === 0 ? current : undefined
      }, 'an empty pool')
      deepEqual([status?.started, status?.desired], [1, 0])
      // kube-apiserver alone has no garbage collector.
      aheadMs += 61_000
      await client.resource(workerPoolResource).patch('plain', { spec: { min: 0, max: 3 } }, { type: 'merge' })
      await eventually(async () => (await podsOf('plain')).length === 0, 'the Pod to be removed')
    })

    test('ImagePullBackOff: the pool reports it immediately, creates no second Pod, and recovers when the image is available', async () => {
      await makePool('images')
      await queueRun('images', 'images')
      const pod = await onePod('images')
      await kubelet(pod, waiting('ImagePullBackOff', 'Back-off pulling image "oarlock:test"'))
      const ready = await readyWith('images', 'ImagePullFailed')
      match(ready.message, /ImagePullBackOff: Back-off pulling image "oarlock:test"/)
      equal((await podsOf('images')).length, 1)
      const shown = await eventually(async () => {
        const { status } = await client.resource(workerResource).get(pod.metadata.name)
        return status?.reason === undefined ? undefined : status
      }, 'the Worker to show the reason')
      deepEqual([shown.phase, shown.reason], ['Pending', 'ImagePullFailed'])
      await playWorker(pod)
      await readyWith('images', 'Ready')
      // The controller's clock is a minute ahead. The quota of the next test counts the Pods that remain.
      await eventually(async () => (await podsOf('images')).length === 0, 'the Pod to be removed')
    })

    test('an exhausted quota is reported, the start is retried after a backoff, and no number is used twice', async () => {
      const quotas = client.resource(quotaResource)
      const hard = { pods: String((await client.resource(podResource).listAll({ namespace })).items.length) }
      await quotas.create({ metadata: { name: 'few', namespace }, spec: { hard } })
      // In a cluster kube-controller-manager writes this status; the embedded server does it itself.
      await quotas.patchStatus('few', { status: { hard, used: hard } }, { namespace })
      const pool = await makePool('poor')
      await queueRun('poor', 'poor')
      match((await readyWith('poor', 'QuotaExceeded')).message, /exceeded quota: few/)
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

    test('Evicted: a new Pod with another name replaces it', async () => {
      await makePool('crowded')
      await queueRun('crowded', 'crowded')
      const first = await onePod('crowded')
      await kubelet(first, { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' })
      match((await readyWith('crowded', 'Evicted')).message, /low on resource: memory/)
      aheadMs += 5_000
      await client.resource(workerPoolResource).patch('crowded', { spec: { max: 3 } }, { type: 'merge' })
      const second = await onePod('crowded', ({ metadata }) => metadata.name !== first.metadata.name)
      await playWorker(second)
      await readyWith('crowded', 'Ready')
      // The failed Pod is kept for some time, so that its log can be read.
      ok((await podsOf('crowded')).some(({ metadata }) => metadata.name === first.metadata.name))
    })

    test('after a restart of the controller the starting Pod is known and gets its Run', async () => {
      await makePool('steady')
      await queueRun('steady', 'steady')
      const pod = await onePod('steady')
      await manager.stop({ graceMs: 2_000 })
      await startController()
      await eventually(async () => {
        const { status } = await client.resource(workerPoolResource).get('steady')
        return status?.starting === 1 && status.queued === 1
      }, 'the status of the pool to be written')
      deepEqual(
        (await podsOf('steady')).map(({ metadata }) => metadata.name),
        [pod.metadata.name],
      )
      await playWorker(pod)
      equal((await client.resource(workerPoolResource).get('steady')).status?.started, 1)
    })

    test('a running Pod that does not register in time is stopped', async () => {
      await makePool('lost', { startTimeout: '5s' })
      const run = await queueRun('lost', 'lost')
      const pod = await onePod('lost')
      await kubelet(pod, {
        phase: 'Running',
        containerStatuses: [{ ...container, ready: true, state: { running: { startedAt: rfc3339(Date.now()) } } }],
      })
      // The Run is canceled, so the Pod is no longer needed.
      await client.resource(runResource).patch(run.metadata.name, { spec: { cancel: true } }, { type: 'merge', namespace })
      aheadMs += 5_000
      await client.resource(workerPoolResource).patch('lost', { spec: { max: 3 } }, { type: 'merge' })
      match((await readyWith('lost', 'RegistrationFailed')).message, /did not register within 5 s/)
      await eventually(async () => (await client.resource(workerResource).getOrUndefined(pod.metadata.name)) === undefined, 'its Worker')
      // Without a garbage collector the Pod has no Worker object, and is stopped for that.
      aheadMs += 31_000
      await client.resource(workerPoolResource).patch('lost', { spec: { max: 4 } }, { type: 'merge' })
      await eventually(async () => (await podsOf('lost')).length === 0, 'the Pod to be deleted')
    })
  })
}
