import { oarlockResources, type StackSource } from '../api/index.ts'
import { validateSource } from '../execution/workspace/index.ts'
import { isJsonObject, StatusError, type StructuralSchema } from '../kubernetes/object/index.ts'
import { suggest } from './suggest.ts'

/**
 * Further lines about an object of ours that the server rejected: the allowed fields in place of an unknown one, and what makes a Stack
 * too large for a request.
 */
export function explainRejection(object: { apiVersion: string; kind: string; spec?: unknown }, error: unknown): string[] {
  if (!(error instanceof StatusError)) return []
  const resource = oarlockResources.find(({ apiVersion, kind }) => apiVersion === object.apiVersion && kind === object.kind)
  if (!resource) return []
  if (error.code === 413 && object.kind === 'Stack' && isJsonObject(object.spec)) {
    return validateSource(object.spec.source as StackSource | undefined).map(({ field, message }) => `${field}: ${message}`)
  }
  const unknown = [...error.message.matchAll(/unknown field "([^"]+)"/g)].map(([, path = '']) => path)
  return unknown.flatMap(path => {
    const allowed = siblingFields(resource.schema, path)
    if (!allowed) return []
    const close = suggest(path.slice(path.lastIndexOf('.') + 1), allowed)
    return [`${path}: unknown field${close ? `, did you mean ${close}?` : ''}; allowed: ${allowed.join(', ')}`]
  })
}

/** The fields that are allowed in place of the last part of `path`, such as `spec.env[0].nam`. */
function siblingFields(schema: StructuralSchema, path: string): string[] | undefined {
  let at: StructuralSchema | undefined = schema
  for (const part of path.split('.').slice(0, -1)) {
    const [name = '', ...indexes] = part.split('[')
    at = at?.properties?.[name]
    for (let depth = 0; depth < indexes.length; depth++) at = at?.items
  }
  return at?.properties && Object.keys(at.properties)
}
