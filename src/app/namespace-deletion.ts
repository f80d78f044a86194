import { annotations, mayLeaveResources, type Stack } from '../api/index.ts'
import type { KubeObject } from '../kubernetes/object/index.ts'

/** Stacks are named in the message up to this number. */
const maxNames = 10

/**
 * Why a Namespace with these Stacks must not be deleted: no Run can start in it any more, so that their resources would stay. Undefined when
 * there are none, and when the annotation of the Namespace allows it.
 */
export function namespaceProblem({ metadata }: Pick<KubeObject, 'metadata'>, stacks: readonly Stack[]): string | undefined {
  if (metadata.annotations?.[annotations.forceDelete] === 'true') return undefined
  const names = stacks.filter(mayLeaveResources).map(stack => stack.metadata.name)
  if (names.length === 0) return undefined
  const more = names.length > maxNames ? ` and ${names.length - maxNames} more` : ''
  return (
    `Stacks in it have resources, which cannot be destroyed once it is being deleted: ${names.slice(0, maxNames).join(', ')}${more}. ` +
    `Destroy them first with "oarlock destroy --all -n ${metadata.name}", or keep them and delete the namespace ` +
    `regardless, with the annotation ${annotations.forceDelete}: "true" on it`
  )
}
