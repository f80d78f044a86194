import { getOwn } from '../object/json.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { escapeField } from './escape.ts'
import { bool, bytes, type CelType, double, duration, dyn, int, list, map, type ObjectType, string, timestamp } from './types.ts'

/**
 * The CEL type of values of `schema`, as Kubernetes declares it; undefined for values without a declared type, which
 * expressions cannot access, and for lists and maps of these. `isResource` adds apiVersion, kind and the names in metadata.
 */
export function typeOfSchema(schema: StructuralSchema, isResource: boolean): CelType | undefined {
  const known = isResource ? resourceTypes : types
  if (known.has(schema)) return known.get(schema)
  const type = declare(schema, isResource)
  known.set(schema, type)
  return type
}

// Each schema has a single type, shared by all rules that refer to it.
const types = new WeakMap<StructuralSchema, CelType | undefined>()
const resourceTypes = new WeakMap<StructuralSchema, CelType | undefined>()

function declare(schema: StructuralSchema, isResource: boolean): CelType | undefined {
  if (schema['x-kubernetes-int-or-string']) return dyn
  switch (schema.type) {
    case 'array': {
      const item = schema.items && typeOfSchema(schema.items, schema.items['x-kubernetes-embedded-resource'] === true)
      return item && list(item)
    }
    case 'object': {
      const { additionalProperties } = schema
      if (typeof additionalProperties === 'object' && !isResource) {
        const value = typeOfSchema(additionalProperties, additionalProperties['x-kubernetes-embedded-resource'] === true)
        return value && map(string, value)
      }
      return objectType(isResource ? asResource(schema) : schema)
    }
    case 'string':
      switch (schema.format) {
        case 'byte':
          return bytes
        case 'duration':
          return duration
        case 'date':
        case 'date-time':
          return timestamp
        default:
          return string
      }
    case 'boolean':
      return bool
    case 'number':
      return double
    case 'integer':
      return int
    case undefined:
      return undefined
  }
}

function objectType(schema: StructuralSchema): ObjectType {
  const fields = new Map<string, CelType>()
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const type = typeOfSchema(property, property['x-kubernetes-embedded-resource'] === true)
    const escaped = escapeField(name)
    if (type && escaped !== undefined) fields.set(escaped, type)
  }
  return { kind: 'object', name: 'object', fields }
}

const resources = new WeakMap<StructuralSchema, StructuralSchema>()

/** The schema of a whole object, with the standard fields. */
export function asResource(schema: StructuralSchema): StructuralSchema {
  let resource = resources.get(schema)
  if (!resource) {
    const text: StructuralSchema = { type: 'string' }
    const metadata: StructuralSchema = { type: 'object', properties: { name: text, generateName: text } }
    resource = { ...schema, properties: { ...schema.properties, apiVersion: text, kind: text, metadata } }
    resources.set(schema, resource)
  }
  return resource
}

/** The schema of the field or key `name` in a value of `schema`. */
export function childSchema(schema: StructuralSchema, name: string): StructuralSchema | undefined {
  const { additionalProperties } = schema
  return getOwn(schema.properties, name) ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
}
