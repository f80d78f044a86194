import type { Stack, StackStatus } from '../../api/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { type StackEvent, setConditions, stalledCondition } from './conditions.ts'

/** True for the error of a create in a namespace that is being deleted: Kubernetes accepts no new object there, so no Run either. */
export function isNamespaceTerminating(error: unknown): boolean {
  return error instanceof StatusError && (error.details?.causes ?? []).some(({ reason }) => String(reason) === 'NamespaceTerminating')
}

/** The status of a Stack whose Run cannot be created because its namespace is being deleted. */
export function namespaceTerminating(stack: Stack, nowMs: number): { status: StackStatus; events: StackEvent[] } {
  const { namespace, generation = 1 } = stack.metadata
  const message =
    `Namespace ${namespace} is being deleted and accepts no new Run, so the resources of the Stack cannot be destroyed. ` +
    'Set spec.deletion to Orphan to keep the resources and finish the deletion'
  const status = stack.status ?? {}
  const { conditions, events } = setConditions(
    status.conditions ?? [],
    stalledCondition('NamespaceTerminating', message),
    generation,
    nowMs,
  )
  return { status: { ...status, conditions, observedGeneration: generation }, events }
}
