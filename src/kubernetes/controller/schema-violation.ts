import type { KubeObject, Resource, StructuralSchema } from '../object/index.ts'
import { validateSchema } from '../schema/index.ts'

/** How many problems are told: the first ones name the field, and nobody reads more in a log line. */
const toldProblems = 3

/**
 * Why an object does not fit the schema its kind was declared with, in Kubernetes' words; undefined if it does, if there
 * is no object, or if the kind was declared without a schema. Servers check what they store, but against the CRD that was
 * installed then: an older or foreign one lets through what this program's types say cannot be.
 */
export function misfitOf(resource: Resource<unknown>, object: KubeObject<unknown> | undefined): string | undefined {
  if (!object || !hasSchema(resource)) return undefined
  const causes = validateSchema(resource.schema, object, '')
  if (causes.length === 0) return undefined
  const told = causes.slice(0, toldProblems).map(({ field, message }) => `${field}: ${message}`)
  return told.join('; ') + (causes.length > toldProblems ? `; and ${causes.length - toldProblems} more` : '')
}

function hasSchema(resource: Resource<unknown>): resource is Resource<unknown> & { schema: StructuralSchema } {
  return 'schema' in resource && typeof resource.schema === 'object' && resource.schema !== null
}
