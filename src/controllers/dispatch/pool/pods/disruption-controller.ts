import {
  isEnded,
  labels,
  type Run,
  runResource,
  systemNamespace,
  type Worker,
  workerPoolResource,
  workerResource,
} from '../../../../api/index.ts'
import { controller, type Manager, watching } from '../../../../kubernetes/controller/index.ts'
import { describeResource, isReason, type JsonObject, type KubeObject, objectKey } from '../../../../kubernetes/object/index.ts'
import { busyWorkersBudget, decideDisruption } from './decide-disruption.ts'
import { type Pod, type PodBody, podResource } from './pod.ts'

const nodeResource = describeResource<{ spec?: JsonObject }>({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', scope: 'Cluster' })
const budgetResource = describeResource<{ spec?: JsonObject }>({
  ...{ group: 'policy', version: 'v1', kind: 'PodDisruptionBudget', plural: 'poddisruptionbudgets', scope: 'Namespaced' },
})

export type DisruptionOptions = {
  /** Monotonic clock in milliseconds. */
  readonly monotonicMs: () => number
}

/**
 * Adds the controller that protects busy workers from evictions: it marks their Pods, creates a PodDisruptionBudget for each pool and namespace, and
 * has workers on cordoned nodes take no more Runs. Pods are those of pools in mode Pod, and those of Deployments whose workers join.
 */
export function addDisruptionController(manager: Manager, { monotonicMs }: DisruptionOptions): void {
  const byNameAndNode = {
    name: ({ metadata }: Pod) => [metadata.name],
    node: ({ spec }: Pod) => (typeof spec?.nodeName === 'string' ? [spec.nodeName] : []),
  }
  const poolPods = { labelSelector: labels.pool, indexes: byNameAndNode }
  const deploymentPods = { labelSelector: labels.poolDeployment, namespace: systemNamespace, indexes: byNameAndNode }
  const podCaches = [manager.informer(podResource, poolPods), manager.informer(podResource, deploymentPods)]
  const workers = manager.informer(workerResource, { indexes: { host: ({ status }) => (status?.host ? [status.host] : []) } })
  const runs = manager.informer(runResource, {
    indexes: { activeOf: ({ spec, status }) => (spec?.workerName && !isEnded({ status }) ? [spec.workerName] : []) },
  })
  const pools = manager.informer(workerPoolResource)
  const onlyName = ({
    apiVersion,
    kind,
    metadata: { name, uid, resourceVersion, creationTimestamp },
  }: KubeObject<{ spec?: JsonObject }>) => ({
    ...{ apiVersion, kind, metadata: { name, uid, resourceVersion, creationTimestamp } },
  })
  const cordonedNodes = { fieldSelector: 'spec.unschedulable=true', transform: onlyName }
  const nodes = manager.informer(nodeResource, cordonedNodes)

  /** By key of the Pod: since when its worker has no Run. */
  const idleSinceMs = new Map<string, number>()
  /** By name of the pool and namespace: the UID of the pool that the budget is for. */
  const budgets = new Map<string, string>()

  const podsBy = (index: 'name' | 'node', value: string) => podCaches.flatMap(pods => pods.byIndex(index, value).map(objectKey))
  const podsOfWorker = (name: string) => podsBy('name', workers.get(name)?.status?.host ?? name).concat(podsBy('name', name))
  const poolLabelOf = (pod: Pod) => (pod.metadata.labels?.[labels.pool] ? labels.pool : labels.poolDeployment)
  /** In mode Pod both have one name. A worker of a Deployment reports the name of its Pod as that of its host. */
  const workerOf = (pod: Pod): Worker | undefined =>
    poolLabelOf(pod) === labels.pool
      ? workers.get(pod.metadata.name)
      : workers.byIndex('host', pod.metadata.name).find(({ spec }) => spec.pool === pod.metadata.labels?.[labels.poolDeployment])

  async function ensureBudget(pod: Pod): Promise<void> {
    const poolLabel = poolLabelOf(pod)
    const { namespace = '' } = pod.metadata
    const pool = pools.get(pod.metadata.labels?.[poolLabel] ?? '')
    if (!pool) return
    const { name, uid } = pool.metadata
    if (budgets.get(`${name}/${namespace}`) === uid) return
    try {
      await manager.leaderClient.resource(budgetResource).create(busyWorkersBudget({ name, uid }, namespace, poolLabel))
    } catch (error) {
      if (!isReason(error, 'AlreadyExists')) throw error
    }
    budgets.set(`${name}/${namespace}`, uid)
  }

  const disruption = controller({
    name: 'disruption',
    for: podResource,
    sharded: false,
    informer: poolPods,
    watches: [
      watching(podResource, pod => [objectKey(pod)], { informer: deploymentPods }),
      watching(workerResource, ({ metadata, status }) => [
        ...podsBy('name', metadata.name),
        ...(status?.host ? podsBy('name', status.host) : []),
      ]),
      watching(runResource, ({ spec }) => (spec?.workerName ? podsOfWorker(spec.workerName) : []), {
        predicate: change => change.type !== 'updated' || assignmentOf(change.old) !== assignmentOf(change.object),
      }),
      watching(nodeResource, ({ metadata }) => podsBy('node', metadata.name), { informer: cordonedNodes }),
    ],
    backoff: { maxDelayMs: 30_000 },
    reconcile: async ({ key, client }) => {
      const pod: Pod | undefined = podCaches.map(pods => pods.get(key)).find(found => found !== undefined)
      if (!pod || isEnding(pod)) {
        idleSinceMs.delete(key)
        return
      }
      const worker = workerOf(pod)
      const activeRuns = worker ? runs.byIndex('activeOf', worker.metadata.name).length : 0
      const nowMs = monotonicMs()
      if (activeRuns > 0) idleSinceMs.delete(key)
      else if (!idleSinceMs.has(key) && worker) idleSinceMs.set(key, nowMs)
      const nodeName = typeof pod.spec?.nodeName === 'string' ? pod.spec.nodeName : ''
      const isNodeCordoned = nodes.get(nodeName) !== undefined
      const idleForMs = nowMs - (idleSinceMs.get(key) ?? nowMs)
      const { patchPod, patchWorker, requeueAfterMs } = decideDisruption({
        own: pod.metadata.labels,
        worker,
        activeRuns,
        isNodeCordoned,
        idleForMs,
      })
      const { name, namespace = '', resourceVersion } = pod.metadata
      try {
        if (patchWorker && worker) {
          const { name, resourceVersion } = worker.metadata
          await client.resource(workerResource).patch(name, patchWorker, { type: 'merge', resourceVersion })
        }
        if (patchPod) await client.resource(podResource).patch(name, patchPod, { type: 'merge', namespace, resourceVersion })
      } catch (error) {
        // What has changed since, or ended, causes another reconcile.
        if (!isReason(error, 'NotFound', 'Conflict')) throw error
      }
      await ensureBudget(pod)
      return { requeueAfterMs }
    },
  })
  manager.add(disruption)
}

const assignmentOf = (run: Pick<Run, 'spec' | 'status'>) => (isEnded(run) ? undefined : run.spec?.workerName)

const isEnding = ({ metadata, status }: KubeObject<PodBody>) =>
  metadata.deletionTimestamp !== undefined || status?.phase === 'Succeeded' || status?.phase === 'Failed'
