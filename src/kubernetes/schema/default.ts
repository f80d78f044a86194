import { cloneJson, getOwn, setOwn } from '../object/json.ts'
import { StatusError } from '../object/status-error.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'

/** The fields and items that the defaults of one object may add: a default of many fields may be that of every value of a map. */
const maxAdded = 100_000

/**
 * Adds the defaults of `schema`, outermost first; returns the same value if none was missing. As in Kubernetes, a null
 * that the schema does not allow becomes the default, or is removed if there is none.
 * The argument is not changed.
 * @throws {StatusError} RequestEntityTooLarge when they add more than 100,000 fields and items.
 */
export function applyDefaults(schema: StructuralSchema, value: unknown): unknown {
  return withDefaults(schema, value, { remaining: maxAdded })
}

type Budget = { remaining: number }

function withDefaults(schema: StructuralSchema, value: unknown, budget: Budget): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const { items } = schema
    if (items === undefined) return value
    let result: unknown[] | undefined
    for (let index = 0; index < value.length; index++) {
      const item = value[index]
      const next = withDefaults(
        items,
        item === null && items.nullable !== true && items.default !== undefined ? copyOf(items.default, budget) : item,
        budget,
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
    setOwn(result, name, copyOf(property.default, budget))
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
      else setOwn(result, name, withDefaults(childSchema, copyOf(childSchema.default, budget), budget))
      continue
    }
    const next = withDefaults(childSchema, child, budget)
    if (next === child) continue
    result ??= { ...object }
    setOwn(result, name, next)
  }
  return result ?? object
}

const sizes = new WeakMap<object, number>()

function copyOf(value: unknown, budget: Budget): unknown {
  budget.remaining -= sizeOf(value)
  if (budget.remaining < 0)
    throw new StatusError('RequestEntityTooLarge', `the defaults of the object add more than ${maxAdded} fields and items`)
  return cloneJson(value)
}

/** The fields and items of a default, and itself. */
function sizeOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  let size = sizes.get(value)
  if (size === undefined) {
    size = 1
    for (const child of Object.values(value)) size += sizeOf(child)
    sizes.set(value, size)
  }
  return size
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
