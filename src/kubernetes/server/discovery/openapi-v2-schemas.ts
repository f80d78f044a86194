import { isJsonObject } from '../../object/index.ts'
import type { OpenApiSchema } from './openapi-schemas.ts'

/** Types that OpenAPI 3 describes by alternatives and OpenAPI 2 by a format. */
const formats: Readonly<Record<string, OpenApiSchema>> = {
  'io.k8s.apimachinery.pkg.api.resource.Quantity': { type: 'string' },
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': { type: 'string', format: 'int-or-string' },
}

/**
 * Schemas reduced to what OpenAPI 2 can express and its tools support: no alternatives, no null, no schemas inside a value with unknown
 * fields.
 */
export function openApiV2Schemas(schemas: Readonly<Record<string, OpenApiSchema>>): Record<string, OpenApiSchema> {
  const simple: Record<string, OpenApiSchema> = {}
  for (const [name, schema] of Object.entries(schemas)) {
    const { oneOf: _, ...rest } = schema
    simple[name] = formats[name] ? { ...rest, ...formats[name] } : simplify(schema)
  }
  return simple
}

function simplify(schema: OpenApiSchema): OpenApiSchema {
  const { allOf, oneOf: _, anyOf: __, not: ___, nullable, ...simple } = schema
  const [reference, ...others] = Array.isArray(allOf) ? (allOf as OpenApiSchema[]) : []
  const $ref = simple.$ref ?? (others.length === 0 ? reference?.$ref : undefined)
  // Only a description may be next to a reference.
  if ($ref !== undefined) return { description: simple.description, $ref }
  const { properties, items, additionalProperties } = simple
  const isOpen = simple['x-kubernetes-preserve-unknown-fields'] === true
  if (nullable === true || isOpen) {
    delete simple.properties
    delete simple.items
    if (nullable === true || simple.type === 'object' || simple.type === 'array') delete simple.type
  } else {
    if (isJsonObject(properties)) simple.properties = simplifyAll(properties)
    if (isJsonObject(items)) simple.items = simplify(items)
    if (simple.type === 'array' && !isJsonObject(items)) delete simple.type
    simple.required = withoutNullable(simple.required, properties)
  }
  if (isJsonObject(additionalProperties)) simple.additionalProperties = simplify(additionalProperties)
  return simple
}

function simplifyAll(schemas: Record<string, unknown>): Record<string, OpenApiSchema> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, simplify(schema as OpenApiSchema)]))
}

// OpenAPI 2 has no null: a nullable field is optional.
function withoutNullable(required: unknown, properties: unknown): unknown {
  if (!Array.isArray(required) || !isJsonObject(properties)) return required
  const kept = required.filter(name => (properties[name] as OpenApiSchema | undefined)?.nullable !== true)
  return kept.length > 0 ? kept : undefined
}
