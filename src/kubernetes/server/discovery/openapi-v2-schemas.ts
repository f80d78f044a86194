import { isJsonObject } from '../../object/index.ts'
import type { OpenApiSchema } from './openapi-schemas.ts'

/** Types that OpenAPI 3 says with alternatives and OpenAPI 2 with a format. */
const formats: Readonly<Record<string, OpenApiSchema>> = {
  'io.k8s.apimachinery.pkg.api.resource.Quantity': { type: 'string' },
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': { type: 'string', format: 'int-or-string' },
}

/**
 * Schemas as OpenAPI 2 can say them, and as the tools that read it cope with: no alternatives, no null, nothing said of
 * what is below a value of which not everything is known.
 */
export function openApiV2Schemas(schemas: Readonly<Record<string, OpenApiSchema>>): Record<string, OpenApiSchema> {
  const said: Record<string, OpenApiSchema> = {}
  for (const [name, schema] of Object.entries(schemas)) {
    const { oneOf: _, ...rest } = schema
    said[name] = formats[name] ? { ...rest, ...formats[name] } : simplify(schema)
  }
  return said
}

function simplify(schema: OpenApiSchema): OpenApiSchema {
  const { allOf, oneOf: _, anyOf: __, not: ___, nullable, ...said } = schema
  const [reference, ...others] = Array.isArray(allOf) ? (allOf as OpenApiSchema[]) : []
  const $ref = said.$ref ?? (others.length === 0 ? reference?.$ref : undefined)
  // Nothing but a description may stand beside a reference.
  if ($ref !== undefined) return { description: said.description, $ref }
  const { properties, items, additionalProperties } = said
  const isOpen = said['x-kubernetes-preserve-unknown-fields'] === true
  if (nullable === true || isOpen) {
    delete said.properties
    delete said.items
    if (nullable === true || said.type === 'object' || said.type === 'array') delete said.type
  } else {
    if (isJsonObject(properties)) said.properties = simplifyAll(properties)
    if (isJsonObject(items)) said.items = simplify(items)
    if (said.type === 'array' && !isJsonObject(items)) delete said.type
    said.required = withoutNullable(said.required, properties)
  }
  if (isJsonObject(additionalProperties)) said.additionalProperties = simplify(additionalProperties)
  return said
}

function simplifyAll(schemas: Record<string, unknown>): Record<string, OpenApiSchema> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, simplify(schema as OpenApiSchema)]))
}

// What may be null need not be there, for a reader who knows no null.
function withoutNullable(required: unknown, properties: unknown): unknown {
  if (!Array.isArray(required) || !isJsonObject(properties)) return required
  const kept = required.filter(name => (properties[name] as OpenApiSchema | undefined)?.nullable !== true)
  return kept.length > 0 ? kept : undefined
}
