/**
 * @module registry/schemas: the types of Kubernetes' built-in kinds, generated from its OpenAPI document (see NOTICE). Start reading at
 * `definitions.ts`, then `go-form.ts`.
 * In: `*.json`, written by scripts/generate-kind-schemas.ts. Out: schemas by type name, and objects in the form of their Go type. Files are
 * read when a kind is first used.
 * Out of scope: rules that are not part of a type (type-rules/, kinds/).
 */
export { type Definition, definition, definitionsFrom } from './definitions.ts'
export { type DecodedKind, goForm } from './go-form.ts'
export { type PublishedSchema, publishedSchemas } from './published.ts'
export { type TypeSchema, typeSchema } from './type-schema.ts'
