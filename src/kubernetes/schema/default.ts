import { cloneJson, getOwn, setOwn } from '../object/json.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'

/**
 * Adds the defaults of `schema`, outermost first; returns the same value if none was missing. As in Kubernetes, a null
 * that the schema does not allow becomes the default, or is removed if there is none.
 * The argument is not changed.
 */
export function applyDefaults(schema: StructuralSchema, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const { items } = schema
    if (items === undefined) return value
    let result: unknown[] | undefined
    for (let index = 0; index < value.length; index++) {
      const item = value[index]
      const next = applyDefaults(
        items,
        item === null && items.nullable !== true && items.default !== undefined ? cloneJson(items.default) : item,
      )
      if (next === item) continue
      result ??= value.slice()
      result[index] = next
    }
    return result ?? value
  }

  const object = value as Record<string, unknown>
  const { properties, additionalProperties } = schema
  let result: Record<string, unknown> | undefined
  for (const name of namesWithDefault(properties)) {
    const property = properties![name]!
    const present = getOwn(object, name)
    if (present !== undefined && (present !== null || property.nullable === true)) continue
    result ??= { ...object }
    setOwn(result, name, cloneJson(property.default))
  }
  for (const name of Object.keys(result ?? object)) {
    const child = (result ?? object)[name]
    if (typeof child !== 'object') continue
    const childSchema = getOwn(properties, name) ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
    if (childSchema === undefined) continue
    if (child === null) {
      if (childSchema.nullable === true) continue
      result ??= { ...object }
      if (childSchema.default === undefined) delete result[name]
      else setOwn(result, name, applyDefaults(childSchema, cloneJson(childSchema.default)))
      continue
    }
    const next = applyDefaults(childSchema, child)
    if (next === child) continue
    result ??= { ...object }
    setOwn(result, name, next)
  }
  return result ?? object
}

const none: readonly string[] = []
// Schemas are immutable once served, and few properties have a default: their names are collected once per schema.
const namesByProperties = new WeakMap<Record<string, StructuralSchema>, readonly string[]>()

function namesWithDefault(properties: Record<string, StructuralSchema> | undefined): readonly string[] {
  if (properties === undefined) return none
  let names = namesByProperties.get(properties)
  if (names === undefined) {
    names = Object.keys(properties).filter(name => properties[name]!.default !== undefined)
    namesByProperties.set(properties, names)
  }
  return names
}
