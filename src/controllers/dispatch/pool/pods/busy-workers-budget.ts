import { isDeepStrictEqual } from 'node:util'
import { labels } from '../../../../api/index.ts'
import { describeResource, type JsonObject, type KubeObject } from '../../../../kubernetes/object/index.ts'

export type BudgetBody = { spec?: JsonObject }
export type Budget = KubeObject<BudgetBody>

export const budgetResource = describeResource<BudgetBody>({
  ...{ group: 'policy', version: 'v1', kind: 'PodDisruptionBudget', plural: 'poddisruptionbudgets', scope: 'Namespaced' },
})

/** What the controllers cache of them. */
export const budgetSelection = {
  labelSelector: labels.pool,
  indexes: { pool: ({ metadata }: Budget) => [metadata.labels?.[labels.pool] ?? ''] },
}

export const budgetName = (pool: string) => `oarlock-busy-${pool}`

const managedBy = 'app.kubernetes.io/managed-by'

/**
 * The PodDisruptionBudget of a pool in a namespace: no busy worker may be evicted. The number is higher than that of any pool, because a percentage
 * or `maxUnavailable` needs an owner with a size. Nothing owns it: the garbage collector would delete it with the pool, whose busy workers finish their Runs.
 */
export const busyWorkersBudget = (pool: string, namespace: string, poolLabel: string) => ({
  metadata: { name: budgetName(pool), namespace, labels: { [labels.pool]: pool, [managedBy]: 'oarlock' } },
  spec: { minAvailable: 1_000_000, selector: { matchLabels: { [poolLabel]: pool, [labels.busy]: 'true' } } },
})

/**
 * Compares the PodDisruptionBudget of a server with the wanted one.
 * @returns what replaces it, with its other labels and annotations; undefined if it protects the pool: with exactly this spec, and without an owner,
 * with which it would be deleted, such as one of an earlier version.
 */
export function replaceBudget(found: Budget, wanted: ReturnType<typeof busyWorkersBudget>): Budget | undefined {
  const { metadata, spec } = wanted
  const hasLabels = Object.entries(metadata.labels).every(([key, value]) => found.metadata.labels?.[key] === value)
  const isOwned = (found.metadata.ownerReferences ?? []).length > 0
  if (hasLabels && !isOwned && isDeepStrictEqual(found.spec, spec)) return undefined
  const { ownerReferences: _, ...present } = found.metadata
  return { ...found, metadata: { ...present, labels: { ...present.labels, ...metadata.labels } }, spec }
}

export type BudgetInput = {
  /** Of this name and namespace. */
  readonly found: Budget | undefined
  /** A Pod of a worker that has not ended: the name of its pool, and the label that names it. */
  readonly worker: { readonly pool: string; readonly poolLabel: string } | undefined
  readonly hasPool: (name: string) => boolean
  readonly namespace: string
}

export type BudgetDecision =
  | { readonly kind: 'none' }
  | { readonly kind: 'create'; readonly budget: ReturnType<typeof busyWorkersBudget> }
  | { readonly kind: 'replace'; readonly budget: Budget }
  /** At exactly this version. */
  | { readonly kind: 'delete'; readonly budget: Budget }

/**
 * Decides what to do with the PodDisruptionBudget of a pool in a namespace. It exists from the first Pod on, and is deleted when the pool has been deleted
 * and its last worker has ended. One with its name and another label is of a user, and remains while it is not needed.
 */
export function decideBudget({ found, worker, hasPool, namespace }: BudgetInput): BudgetDecision {
  if (worker) {
    const wanted = busyWorkersBudget(worker.pool, namespace, worker.poolLabel)
    if (!found) return { kind: 'create', budget: wanted }
    const replacement = replaceBudget(found, wanted)
    return replacement ? { kind: 'replace', budget: replacement } : { kind: 'none' }
  }
  const { name, labels: own = {}, deletionTimestamp } = found?.metadata ?? {}
  const pool = own[labels.pool]
  const isOurs = pool !== undefined && name === budgetName(pool) && own[managedBy] === 'oarlock'
  return found && isOurs && !hasPool(pool) && deletionTimestamp === undefined ? { kind: 'delete', budget: found } : { kind: 'none' }
}
