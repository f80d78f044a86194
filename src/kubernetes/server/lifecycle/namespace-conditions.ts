import { type Condition, type ConditionUpdate, setCondition } from '../../object/index.ts'

/** The remaining content of a namespace that is being deleted. */
export type RemainingContent = {
  /** The number of objects by resource, such as `pods.` and `deployments.apps`. */
  readonly resources: ReadonlyMap<string, number>
  /** The number of objects by remaining finalizer. */
  readonly finalizers: ReadonlyMap<string, number>
  /** The errors of failed deletions. */
  readonly failures: readonly string[]
}

const successes = {
  NamespaceDeletionDiscoveryFailure: ['ResourcesDiscovered', 'All resources successfully discovered'],
  NamespaceDeletionGroupVersionParsingFailure: ['ParsedGroupVersions', 'All legacy kube types successfully parsed'],
  NamespaceDeletionContentFailure: ['ContentDeleted', 'All content successfully deleted, may be waiting on finalization'],
  NamespaceContentRemaining: ['ContentRemoved', 'All content successfully removed'],
  NamespaceFinalizersRemaining: ['ContentHasNoFinalizers', 'All content-preserving finalizers finished'],
} as const

/**
 * The conditions of a namespace that is being deleted, with the messages of Kubernetes' namespace controller, which show users why the
 * deletion is not complete. Discovery runs in the same process and never fails.
 */
export function namespaceConditions(before: readonly Condition[] | undefined, remaining: RemainingContent, nowMs: number): Condition[] {
  const { resources, finalizers, failures } = remaining
  const wrong: Partial<Record<keyof typeof successes, readonly [reason: string, message: string]>> = {}
  if (failures.length > 0) {
    const list = [...failures].sort().join(', ')
    const message = `Failed to delete all resource types, ${failures.length} remaining: ${list}`
    wrong.NamespaceDeletionContentFailure = ['ContentDeletionFailed', message]
  }
  if (resources.size > 0) {
    const list = formatCounts(resources, ' has', 'resource instances')
    wrong.NamespaceContentRemaining = ['SomeResourcesRemain', `Some resources are remaining: ${list}`]
  }
  if (finalizers.size > 0) {
    const list = formatCounts(finalizers, ' in', 'resource instances')
    const message = `Some content in the namespace has finalizers remaining: ${list}`
    wrong.NamespaceFinalizersRemaining = ['SomeFinalizersRemain', message]
  }
  let conditions = [...(before ?? [])]
  for (const type of Object.keys(successes) as (keyof typeof successes)[]) {
    const [reason, message] = wrong[type] ?? successes[type]
    const update: ConditionUpdate = { type, status: wrong[type] ? 'True' : 'False', reason, message }
    conditions = setCondition(conditions, update, nowMs)
  }
  return conditions
}

function formatCounts(counts: ReadonlyMap<string, number>, verb: string, what: string): string {
  return [...counts]
    .map(([name, count]) => `${name}${verb} ${count} ${what}`)
    .sort()
    .join(', ')
}
