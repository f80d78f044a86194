import { getOwn, isJsonObject, setOwn } from '../object/json.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'

/** A hostile object may consist of unknown fields; more paths than this are of no use. */
const maxPruned = 1_000

export type Pruned = {
  /** The same value as the input if nothing was unknown. */
  value: unknown
  /** The paths of pruned fields, such as `spec.foo` or `spec.items[2].bar`: the first 1,000. */
  pruned: string[]
}

/**
 * Removes the fields that `schema` does not specify. With an empty `path` the value is a whole object, whose apiVersion,
 * kind and metadata are kept; so are those of embedded resources. The argument is not changed.
 */
export function pruneUnknown(schema: StructuralSchema, value: unknown, path: string): Pruned {
  const pruned: string[] = []
  return { value: prune(schema, value, path, path === '', pruned), pruned }
}

function prune(schema: StructuralSchema | undefined, value: unknown, path: string, isResource: boolean, pruned: string[]): unknown {
  if (typeof value !== 'object' || value === null) return value
  const keepsUnknown = schema?.['x-kubernetes-preserve-unknown-fields'] === true
  if (Array.isArray(value)) {
    if (keepsUnknown && schema?.items === undefined) return value
    let result: unknown[] | undefined
    for (let index = 0; index < value.length; index++) {
      const item = value[index]
      if (typeof item !== 'object' || item === null) continue
      const next = prune(schema?.items, item, `${path}[${index}]`, false, pruned)
      if (next === item) continue
      result ??= value.slice()
      result[index] = next
    }
    return result ?? value
  }

  const object = value as Record<string, unknown>
  // A value of the wrong type: validation reports the type, not the contents.
  if (schema?.items !== undefined) return value
  const { properties, additionalProperties } = schema ?? {}
  const keepsMeta = isResource || schema?.['x-kubernetes-embedded-resource'] === true
  let result: Record<string, unknown> | undefined
  for (const name of Object.keys(object)) {
    if (keepsMeta && isMetaField(name)) continue
    const child = object[name]
    const known = getOwn(properties, name) ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
    if (known === undefined) {
      if (keepsUnknown || additionalProperties === true) continue
      if (pruned.length < maxPruned) pruned.push(join(path, name))
      result ??= { ...object }
      delete result[name]
      continue
    }
    if (typeof child !== 'object' || child === null) continue
    const next = prune(known, child, join(path, name), false, pruned)
    if (next === child) continue
    result ??= { ...object }
    setOwn(result, name, next)
  }
  return result ?? object
}

const isMetaField = (name: string) => name === 'apiVersion' || name === 'kind' || name === 'metadata'
const join = (path: string, name: string) => (path === '' ? name : `${path}.${name}`)

/** True if `schema` can prune anything: false allows a caller to skip {@link pruneUnknown}. */
export function prunesAnything(schema: StructuralSchema): boolean {
  if (schema['x-kubernetes-preserve-unknown-fields'] !== true) return schema.type === 'object' || schema.type === 'array'
  return [...Object.values(schema.properties ?? {}), schema.items, schema.additionalProperties].some(
    part => isJsonObject(part) && prunesAnything(part as StructuralSchema),
  )
}
