import { oarlockCommand, type Stack, type StackStatus } from '../../api/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { type StackEvent, stalledCondition, withConditions } from './conditions.ts'

/** True for the error of a create in a namespace that is being deleted: Kubernetes accepts no new object there, so no Run either. */
export function isNamespaceTerminating(error: unknown): boolean {
  return error instanceof StatusError && (error.details?.causes ?? []).some(({ reason }) => String(reason) === 'NamespaceTerminating')
}

/** The status of a Stack whose Run cannot be created because its namespace is being deleted. */
export function namespaceTerminating(stack: Stack, nowMs: number): { status: StackStatus; events: StackEvent[] } {
  const { namespace } = stack.metadata
  const message =
    `Namespace ${namespace} is being deleted and accepts no new Run, so the resources of the Stack cannot be destroyed. ` +
    `To destroy them, save the state (${oarlockCommand('state pull', stack.metadata)}) and import it into a Stack of another namespace. ` +
    'Set spec.deletion to Orphan to finish the deletion'
  return withConditions(stack, stalledCondition('NamespaceTerminating', message), nowMs)
}
