import { badRequest, type StatusCause, type StatusError, type StructuralSchema } from '../../object/index.ts'
import type { Kind } from '../registry/index.ts'

const goNames: Record<string, string> = { integer: 'number', number: 'number', boolean: 'bool' }

/**
 * The 400 for a field of a built-in kind with the wrong JSON type, in the wording of the Go decoder that users know from
 * `kubectl apply`. Undefined when no cause is about a type.
 */
export function goTypeError(kind: Kind, causes: readonly StatusCause[]): StatusError | undefined {
  const cause = causes.find(({ reason }) => reason === 'FieldValueTypeInvalid')
  if (!cause) return undefined
  const [, wanted, got] = /must be of type ([a-z-]+): ("(?:[^"\\]|\\.)*")$/.exec(cause.message) ?? []
  if (wanted === undefined || got === undefined) return undefined
  const why = whyOf(kind, cause.field, wanted, JSON.parse(got) as string)
  return badRequest(`${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: ${why}`)
}

function whyOf(kind: Kind, field: string, wanted: string, got: string): string {
  if (wanted === 'byte') return `illegal base64 data at input byte ${firstIllegal(got)}`
  if (wanted === 'date-time') return `parsing time ${JSON.stringify(got)} as RFC 3339: it must look like 2006-01-02T15:04:05Z`
  // The path ends before keys of maps, which are not struct fields.
  let schema: StructuralSchema | undefined = kind.schema
  const path: string[] = []
  for (const name of field.replace(/\[\d+\]/g, '').split('.')) {
    const known: StructuralSchema | undefined = (schema?.items ?? schema)?.properties?.[name]
    if (!known) break
    path.push(name)
    schema = known
  }
  const type = typeof schema?.additionalProperties === 'object' && wanted === 'object' ? 'map[string]string' : wanted
  return `json: cannot unmarshal ${goNames[got] ?? got} into Go struct field ${kind.kind}.${path.join('.')} of type ${type}`
}

function firstIllegal(text: string): number {
  const at = text.search(/[^A-Za-z0-9+/=]/)
  return at < 0 ? text.length : at
}
