import { type Worker, type WorkerPool, workerPoolResource, workerResource } from '../../../../api/index.ts'
import { type Controller, controller, type Informer, type InformerOptions, watching } from '../../../../kubernetes/controller/index.ts'
import { isReason, type KubeObject, objectKey } from '../../../../kubernetes/object/index.ts'
import { type Budget, type BudgetBody, budgetResource, budgetSelection, decideBudget } from './busy-workers-budget.ts'
import { type Pod, type PodBody, podResource } from './pod.ts'

export type BudgetControllerParts = {
  /** Of Pods, with the indexes `budget`, the key of the PodDisruptionBudget of a Pod, and `pool`, the name of its pool. */
  readonly podSelections: readonly InformerOptions<PodBody>[]
  readonly podCaches: readonly Informer<PodBody>[]
  readonly budgets: Informer<BudgetBody>
  readonly pools: Pick<Informer<WorkerPool>, 'get'>
  /** Whether a Pod is that of a worker and has not ended. */
  isProtected(pod: Pod): boolean
  /** Keys of the Pods that a worker may run in. */
  podsOf(worker: KubeObject<Pick<Worker, 'spec' | 'status'>>): readonly string[]
  /** The label of a Pod that names its pool. */
  poolLabelOf(pod: Pod): string
  /** Key of the PodDisruptionBudget of a Pod. */
  budgetKeyOf(pod: Pod): string
}

/**
 * Keeps a PodDisruptionBudget in each namespace with Pods of a pool: one that was deleted is created again, and one that was changed or that a user created
 * is replaced. It outlives its pool until the last of its workers has ended, also if another process leads by then.
 */
export function budgetController(parts: BudgetControllerParts): Controller {
  const { podSelections, podCaches, budgets, pools, isProtected, podsOf, poolLabelOf, budgetKeyOf } = parts
  const podsBy = (index: 'budget' | 'pool', value: string) => podCaches.flatMap(pods => pods.byIndex(index, value))
  const podAt = (key: string): Pod | undefined => podCaches.map(pods => pods.get(key)).find(found => found !== undefined)
  return controller({
    name: 'disruption-budgets',
    for: budgetResource,
    // A budget that does not exist yet has no UID, and so no bucket.
    sharded: false,
    informer: budgetSelection,
    watches: [
      ...podSelections.map(informer => watching(podResource, pod => [budgetKeyOf(pod)], { informer })),
      watching(
        workerPoolResource,
        ({ metadata: { name } }) => [
          ...new Set([...podsBy('pool', name).map(budgetKeyOf), ...budgets.byIndex('pool', name).map(objectKey)]),
        ],
        { predicate: ({ type }) => type !== 'updated' },
      ),
      // Of a Deployment: its Pod remains.
      watching(
        workerResource,
        worker =>
          podsOf(worker)
            .flatMap(key => podAt(key) ?? [])
            .map(budgetKeyOf),
        {
          predicate: ({ type }) => type === 'deleted',
        },
      ),
    ],
    backoff: { maxDelayMs: 30_000 },
    reconcile: async ({ key, name, namespace = '', object, client }) => {
      const pod = podsBy('budget', key).find(isProtected)
      const poolLabel = pod && poolLabelOf(pod)
      const worker = poolLabel === undefined ? undefined : { pool: pod?.metadata.labels?.[poolLabel] ?? '', poolLabel }
      const decide = (found: Budget | undefined) =>
        decideBudget({ found, worker, hasPool: other => pools.get(other) !== undefined, namespace })
      const handle = client.resource(budgetResource)
      let decision = decide(object)
      try {
        if (decision.kind === 'create') await handle.create(decision.budget)
      } catch (error) {
        if (!isReason(error, 'AlreadyExists')) throw error
        // Without the label by which it is cached, so not created here.
        decision = decide(await handle.getOrUndefined(name, { namespace }))
      }
      if (decision.kind === 'replace') await handle.update(decision.budget)
      if (decision.kind !== 'delete') return
      const { uid, resourceVersion } = decision.budget.metadata
      await handle.delete(name, { namespace, preconditions: { uid, resourceVersion } })
    },
  })
}
