import { isDeepStrictEqual } from 'node:util'
import { labels } from '../../../../api/index.ts'
import { describeResource, type JsonObject, type KubeObject } from '../../../../kubernetes/object/index.ts'

export type BudgetBody = { spec?: JsonObject }
export type Budget = KubeObject<BudgetBody>

export const budgetResource = describeResource<BudgetBody>({
  ...{ group: 'policy', version: 'v1', kind: 'PodDisruptionBudget', plural: 'poddisruptionbudgets', scope: 'Namespaced' },
})

/** What the controllers cache of them. */
export const budgetSelection = { labelSelector: labels.pool }

export const budgetName = (pool: string) => `oarlock-busy-${pool}`

/**
 * The PodDisruptionBudget of a pool in a namespace: no busy worker may be evicted. The number is higher than that of any pool, because a percentage
 * or `maxUnavailable` needs an owner with a size. The pool owns it, so it is deleted with the pool.
 */
export const busyWorkersBudget = (pool: { readonly name: string; readonly uid: string }, namespace: string, poolLabel: string) => ({
  metadata: {
    name: budgetName(pool.name),
    namespace,
    labels: { [labels.pool]: pool.name, 'app.kubernetes.io/managed-by': 'oarlock' },
    ownerReferences: [{ apiVersion: 'oarlock.dev/v1alpha1', kind: 'WorkerPool', name: pool.name, uid: pool.uid }],
  },
  spec: { minAvailable: 1_000_000, selector: { matchLabels: { [poolLabel]: pool.name, [labels.busy]: 'true' } } },
})

/**
 * Compares the PodDisruptionBudget of a server with the wanted one.
 * @returns what replaces it, with its other labels and annotations; undefined if it protects the pool: with exactly this spec, and only as long as
 * this pool exists. One that a pool of the same name left behind would be deleted by the garbage collector.
 */
export function replaceBudget(found: Budget, wanted: ReturnType<typeof busyWorkersBudget>): Budget | undefined {
  const { metadata, spec } = wanted
  const [owner, ...otherOwners] = found.metadata.ownerReferences ?? []
  const hasLabels = Object.entries(metadata.labels).every(([key, value]) => found.metadata.labels?.[key] === value)
  const isOwned = otherOwners.length === 0 && owner?.uid === metadata.ownerReferences[0]?.uid
  if (hasLabels && isOwned && isDeepStrictEqual(found.spec, spec)) return undefined
  return {
    ...found,
    metadata: { ...found.metadata, labels: { ...found.metadata.labels, ...metadata.labels }, ownerReferences: metadata.ownerReferences },
    spec,
  }
}
