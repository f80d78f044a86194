import type { KubeObject, Resource, StructuralSchema } from '../object/index.ts'
import { validateSchema } from '../schema/index.ts'

/** How many violations one message lists. */
const maxReportedViolations = 3

/**
 * How an object violates the schema that its kind was declared with, in Kubernetes' wording; undefined if it does not, if there is no
 * object, or if the kind was declared without a schema. Servers validate what they store, but against the CRD that was installed
 * at that time: an older or foreign CRD accepts what this program's types exclude.
 */
export function schemaViolationOf(resource: Resource<unknown>, object: KubeObject<unknown> | undefined): string | undefined {
  if (!object || !hasSchema(resource)) return undefined
  const causes = validateSchema(resource.schema, object, '')
  if (causes.length === 0) return undefined
  const reported = causes.slice(0, maxReportedViolations).map(({ field, message }) => `${field}: ${message}`)
  return reported.join('; ') + (causes.length > maxReportedViolations ? `; and ${causes.length - maxReportedViolations} more` : '')
}

function hasSchema(resource: Resource<unknown>): resource is Resource<unknown> & { schema: StructuralSchema } {
  return 'schema' in resource && typeof resource.schema === 'object' && resource.schema !== null
}
