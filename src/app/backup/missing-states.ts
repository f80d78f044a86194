import { expectedStateVersion, type Stack, stackResource } from '../../api/index.ts'
import { readObjects } from '../../kubernetes/server/index.ts'
import { decideStateError, formatStateError } from '../../stores/state/index.ts'

/** The Stacks in a copy of the objects whose state is not in a copy of the states, each as a text. */
export function missingStates(objects: string, newestVersions: ReadonlyMap<string, number>): string[] {
  const missing: string[] = []
  for (const object of readObjects(objects, stacksTable)) {
    const stack = object as Stack
    const { namespace, name, uid } = stack.metadata
    const error = decideStateError(expectedStateVersion(stack), newestVersions.get(uid) ?? 0)
    if (error) missing.push(`stack/${name} -n ${namespace}: ${formatStateError(error)}`)
  }
  return missing
}

export const stacksTable = `${stackResource.plural}.${stackResource.group}`
