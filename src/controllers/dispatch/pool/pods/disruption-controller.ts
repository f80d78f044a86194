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
import { budgetController } from './budget-controller.ts'
import { budgetName, budgetResource, budgetSelection } from './busy-workers-budget.ts'
import { decideDisruption } from './decide-disruption.ts'
import { isWorkerPod } from './is-worker-pod.ts'
import { type Pod, type PodBody, podResource } from './pod.ts'

const nodeResource = describeResource<{ spec?: JsonObject }>({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', scope: 'Cluster' })

export type DisruptionOptions = {
  /** Monotonic clock in milliseconds. */
  readonly monotonicMs: () => number
}

/**
 * Adds the controllers that protect busy workers from evictions: one marks their Pods and has workers on cordoned nodes take no more Runs, the other
 * keeps a PodDisruptionBudget for each pool and namespace (`budget-controller.ts`). Pods are those of pools in mode Pod, and those of Deployments whose workers join.
 */
export function addDisruptionController(manager: Manager, { monotonicMs }: DisruptionOptions): void {
  const indexes = {
    name: ({ metadata }: Pod) => [metadata.name],
    node: ({ spec }: Pod) => (typeof spec?.nodeName === 'string' ? [spec.nodeName] : []),
    pool: (pod: Pod) => [poolNameOf(pod)],
    budget: (pod: Pod) => [budgetKeyOf(pod)],
  }
  const poolPods = { labelSelector: labels.pool, indexes }
  const deploymentPods = { labelSelector: labels.poolDeployment, namespace: systemNamespace, indexes }
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

  const podsBy = (index: 'name' | 'node', value: string) => podCaches.flatMap(pods => pods.byIndex(index, value).map(objectKey))
  const podsOfWorker = (name: string) => podsBy('name', workers.get(name)?.status?.host ?? name).concat(podsBy('name', name))
  /** In mode Pod both have one name. A worker of a Deployment reports the name of its Pod as that of its host. */
  const workerOf = (pod: Pod): Worker | undefined =>
    poolLabelOf(pod) === labels.pool
      ? workers.get(pod.metadata.name)
      : workers.byIndex('host', pod.metadata.name).find(({ spec }) => spec.pool === poolNameOf(pod))

  /** Pods of Deployments are in `oarlock-system`, where only administrators create any. */
  const isOwn = (pod: Pod) =>
    poolLabelOf(pod) !== labels.pool || isWorkerPod(pod, { worker: workers.get(pod.metadata.name), pool: pools.get(poolNameOf(pod)) })

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
      if (!pod || isEnding(pod) || !isOwn(pod)) {
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
      return { requeueAfterMs }
    },
  })
  manager.add(disruption)
  const budgets = manager.informer(budgetResource, budgetSelection)
  // Of a deleted pool only Pods whose worker is known count: a user could create one that names any pool and any worker.
  const isProtected = (pod: Pod) =>
    !isEnding(pod) && isOwn(pod) && (pools.get(poolNameOf(pod)) !== undefined || workerOf(pod) !== undefined)
  const podsOf = ({ metadata, status }: KubeObject<Pick<Worker, 'spec' | 'status'>>) =>
    podsBy('name', metadata.name).concat(status?.host ? podsBy('name', status.host) : [])
  const podSelections = [poolPods, deploymentPods]
  manager.add(budgetController({ podSelections, podCaches, budgets, pools, isProtected, podsOf, poolLabelOf, budgetKeyOf }))
}

const poolLabelOf = ({ metadata }: Pod) => (metadata.labels?.[labels.pool] ? labels.pool : labels.poolDeployment)
const poolNameOf = (pod: Pod) => pod.metadata.labels?.[poolLabelOf(pod)] ?? ''
const budgetKeyOf = (pod: Pod) => objectKey({ metadata: { namespace: pod.metadata.namespace, name: budgetName(poolNameOf(pod)) } })

const assignmentOf = (run: Pick<Run, 'spec' | 'status'>) => (isEnded(run) ? undefined : run.spec?.workerName)

const isEnding = ({ metadata, status }: KubeObject<PodBody>) =>
  metadata.deletionTimestamp !== undefined || status?.phase === 'Succeeded' || status?.phase === 'Failed'
