import { type Definition, definitionsFrom } from './definitions.ts'

/** A schema as OpenAPI documents have it. */
export type PublishedSchema = { [key: string]: unknown }

/**
 * The types that `names` lead to, themselves included, as OpenAPI publishes them.
 * @param prefix what references begin with: `#/components/schemas/` or, in version 2, `#/definitions/`.
 */
export function publishedSchemas(names: Iterable<string>, prefix: string): Record<string, PublishedSchema> {
  const schemas: Record<string, PublishedSchema> = {}
  for (const [name, definition] of definitionsFrom(names)) schemas[name] = published(definition, prefix)
  return schemas
}

// In version 2 a reference stands alone beside its description; in version 3 nothing may stand beside it.
function published(definition: Definition, prefix: string): PublishedSchema {
  const { $ref, properties, items, additionalProperties, pointers: _, absent: __, ...rest } = definition
  const schema: PublishedSchema = rest
  if ($ref !== undefined) {
    if (prefix.startsWith('#/definitions')) schema.$ref = prefix + $ref
    else schema.allOf = [{ $ref: prefix + $ref }]
  }
  if (properties) schema.properties = Object.fromEntries(Object.entries(properties).map(([name, part]) => [name, published(part, prefix)]))
  if (items) schema.items = published(items, prefix)
  if (additionalProperties) schema.additionalProperties = published(additionalProperties, prefix)
  return schema
}
