import { type Stack, stackResource } from '../../api/index.ts'
import { readObjects } from '../../kubernetes/server/index.ts'

/** The Stacks in a copy of the objects whose state is not in a copy of the states, each as a text. */
export function missingStates(objects: string, newestVersions: ReadonlyMap<string, number>): string[] {
  const missing: string[] = []
  for (const object of readObjects(objects, stacksTable)) {
    const { metadata, spec, status } = object as Stack
    if (spec.state === 'External' || !((status?.resources ?? 0) > 0)) continue
    if ((newestVersions.get(metadata.uid) ?? 0) === 0)
      missing.push(`${metadata.namespace}/${metadata.name}: no state, ${status?.resources} resources`)
  }
  return missing
}

export const stacksTable = `${stackResource.plural}.${stackResource.group}`
