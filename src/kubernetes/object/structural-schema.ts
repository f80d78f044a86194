import type { TSchema } from 'typebox'

/** OpenAPI v3 as in CustomResourceDefinitions: https://kubernetes.io/docs/reference/kubernetes-api/ (JSONSchemaProps). */
export type StructuralSchema = {
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  description?: string
  title?: string
  format?: string
  default?: unknown
  nullable?: boolean
  enum?: unknown[]
  properties?: Record<string, StructuralSchema>
  additionalProperties?: StructuralSchema | boolean
  items?: StructuralSchema
  required?: string[]
  minimum?: number
  maximum?: number
  exclusiveMinimum?: boolean
  exclusiveMaximum?: boolean
  multipleOf?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  minProperties?: number
  maxProperties?: number
  allOf?: StructuralSchema[]
  anyOf?: StructuralSchema[]
  oneOf?: StructuralSchema[]
  not?: StructuralSchema
  'x-kubernetes-preserve-unknown-fields'?: boolean
  'x-kubernetes-int-or-string'?: boolean
  'x-kubernetes-embedded-resource'?: boolean
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  'x-kubernetes-list-map-keys'?: string[]
  'x-kubernetes-map-type'?: 'atomic' | 'granular'
  /** For built-in kinds: how a strategic merge patch treats a list or map; `merge`, `retainKeys` or both. */
  'x-kubernetes-patch-strategy'?: string
  /** The field that identifies items of a list when the strategy is `merge`. */
  'x-kubernetes-patch-merge-key'?: string
  'x-kubernetes-validations'?: ValidationRule[]
}

/** A CEL rule: `rule` must evaluate to true for `self` (and `oldSelf`, which makes it a transition rule). */
export type ValidationRule = {
  rule: string
  message?: string
  messageExpression?: string
  reason?: string
  fieldPath?: string
  optionalOldSelf?: boolean
}

const copied = [
  'description',
  'title',
  'format',
  'default',
  'nullable',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'multipleOf',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-int-or-string',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-validations',
] as const

/**
 * Converts a TypeBox declaration into a structural schema: records become `additionalProperties`, literal unions become
 * enums, `Type.Unknown()` preserves any value.
 * @throws {TypeError} naming `path` for what has no structural form (other unions, tuples, functions).
 */
export function toStructuralSchema(declaration: TSchema, path: string): StructuralSchema {
  // JSON Schema is read as data here: TypeBox's types describe how it was built, not what it may contain.
  const json = declaration as Record<string, unknown>
  const schema: Record<string, unknown> = {}
  for (const key of copied) if (json[key] !== undefined) schema[key] = structuredClone(json[key])

  const values = enumValues(json)
  if (values) {
    const types = new Set(values.map(value => typeof value))
    const [type] = types
    if (types.size !== 1 || (type !== 'string' && type !== 'number' && type !== 'boolean')) {
      throw new TypeError(`${path}: the values of an enum must be all strings, all numbers or all booleans, got ${JSON.stringify(values)}`)
    }
    return { ...schema, type, enum: values } as StructuralSchema
  }

  switch (json.type) {
    case 'object':
      return { ...schema, type: 'object', ...objectParts(json, path) } as StructuralSchema
    case 'array':
      return { ...schema, type: 'array', items: toStructuralSchema(json.items as TSchema, `${path}[]`) } as StructuralSchema
    case 'string':
    case 'integer':
    case 'number':
    case 'boolean':
      return { ...schema, type: json.type } as StructuralSchema
    case undefined:
      if (!('anyOf' in json || 'allOf' in json || 'oneOf' in json)) {
        if (schema['x-kubernetes-int-or-string']) return schema as StructuralSchema
        return { ...schema, 'x-kubernetes-preserve-unknown-fields': true } as StructuralSchema
      }
  }
  throw new TypeError(`${path}: a structural schema cannot express ${JSON.stringify(json).slice(0, 120)}`)
}

function objectParts(json: Record<string, unknown>, path: string): Partial<StructuralSchema> {
  const parts: Partial<StructuralSchema> = {}
  if (json.properties) {
    parts.properties = Object.fromEntries(
      Object.entries(json.properties as Record<string, TSchema>).map(([name, child]) => [
        name,
        toStructuralSchema(child, `${path}.${name}`),
      ]),
    )
    const required = json.required as string[] | undefined
    if (required?.length) parts.required = [...required]
  }
  const [anyKey] = Object.values((json.patternProperties as Record<string, TSchema>) ?? {})
  if (anyKey) parts.additionalProperties = toStructuralSchema(anyKey, `${path}{}`)
  else if (typeof json.additionalProperties === 'object') {
    parts.additionalProperties = toStructuralSchema(json.additionalProperties as TSchema, `${path}{}`)
  }
  return parts
}

function enumValues(json: Record<string, unknown>): unknown[] | undefined {
  if (Array.isArray(json.enum)) return json.enum
  if ('const' in json) return [json.const]
  const members = json.anyOf as Record<string, unknown>[] | undefined
  if (members?.every(member => 'const' in member)) return members.map(member => member.const)
  return undefined
}
