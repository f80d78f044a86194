/**
 * @module registry/schemas: the types of Kubernetes' built-in kinds, generated from its OpenAPI (see NOTICE). Start reading
 * at `definitions.ts`, then `go-form.ts`.
 * In: `*.json`, written by scripts/generate-kind-schemas.ts. Out: schemas by the name of a type, objects in the form their
 * Go type would give them. Everything is read when a kind is first used.
 * Not here: what Kubernetes decides beyond types (type-rules/, kinds/).
 */
export { type Definition, definition, definitionsFrom } from './definitions.ts'
export { type DecodedKind, goForm } from './go-form.ts'
export { type PublishedSchema, publishedSchemas } from './published.ts'
export { type TypeSchema, typeSchema } from './type-schema.ts'
