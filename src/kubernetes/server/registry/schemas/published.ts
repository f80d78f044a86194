import { type Definition, definitionsFrom } from './definitions.ts'

/** A schema of an OpenAPI document. */
export type PublishedSchema = { [key: string]: unknown }

/**
 * The types of `names` and all types that they refer to, as OpenAPI publishes them.
 * @param prefix the prefix of references: `#/components/schemas/`, in version 2 `#/definitions/`.
 */
export function publishedSchemas(names: Iterable<string>, prefix: string): Record<string, PublishedSchema> {
  const schemas: Record<string, PublishedSchema> = {}
  for (const [name, definition] of definitionsFrom(names)) schemas[name] = published(definition, prefix)
  return schemas
}

// In version 2 a reference may only have a description next to it, in version 3 nothing.
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
