import { type WorkerPool, workerPoolResource } from '../../../../api/index.ts'
import { type Controller, controller, type Informer, type InformerOptions, watching } from '../../../../kubernetes/controller/index.ts'
import { isReason } from '../../../../kubernetes/object/index.ts'
import { budgetResource, budgetSelection, busyWorkersBudget, replaceBudget } from './busy-workers-budget.ts'
import { type Pod, type PodBody, podResource } from './pod.ts'

export type BudgetControllerParts = {
  /** Of Pods, with the indexes `budget`, the key of the PodDisruptionBudget of a Pod, and `pool`, the name of its pool. */
  readonly podSelections: readonly InformerOptions<PodBody>[]
  readonly podCaches: readonly Informer<PodBody>[]
  readonly pools: Pick<Informer<WorkerPool>, 'get'>
  /** Whether a Pod is that of a worker and has not ended. */
  isProtected(pod: Pod): boolean
  /** The label of a Pod that names its pool. */
  poolLabelOf(pod: Pod): string
  /** Key of the PodDisruptionBudget of a Pod. */
  budgetKeyOf(pod: Pod): string
}

/**
 * Keeps a PodDisruptionBudget in each namespace with Pods of a pool, for as long as there are any: one that was deleted is created again, and one that was
 * changed, that a user created, or that belongs to a deleted pool of the same name is replaced.
 */
export function budgetController(parts: BudgetControllerParts): Controller {
  const { podSelections, podCaches, pools, isProtected, poolLabelOf, budgetKeyOf } = parts
  const podsBy = (index: 'budget' | 'pool', value: string) => podCaches.flatMap(pods => pods.byIndex(index, value))
  return controller({
    name: 'disruption-budgets',
    for: budgetResource,
    // A budget that does not exist yet has no UID, and so no bucket.
    sharded: false,
    informer: budgetSelection,
    watches: [
      ...podSelections.map(informer =>
        watching(podResource, pod => [budgetKeyOf(pod)], { informer, predicate: ({ type }) => type !== 'deleted' }),
      ),
      watching(workerPoolResource, ({ metadata }) => [...new Set(podsBy('pool', metadata.name).map(budgetKeyOf))], {
        predicate: ({ type }) => type === 'added',
      }),
    ],
    backoff: { maxDelayMs: 30_000 },
    reconcile: async ({ key, name, namespace = '', object, client }) => {
      const pod = podsBy('budget', key).find(isProtected)
      if (!pod) return
      const poolLabel = poolLabelOf(pod)
      const pool = pools.get(pod.metadata.labels?.[poolLabel] ?? '')
      if (!pool) return
      const wanted = busyWorkersBudget({ name: pool.metadata.name, uid: pool.metadata.uid }, namespace, poolLabel)
      const budgets = client.resource(budgetResource)
      let found = object
      try {
        if (!found) await budgets.create(wanted)
      } catch (error) {
        if (!isReason(error, 'AlreadyExists')) throw error
        // Without the label by which it is cached, so not created here.
        found = await budgets.getOrUndefined(name, { namespace })
      }
      const replacement = found && replaceBudget(found, wanted)
      if (replacement) await budgets.update(replacement)
    },
  })
}
