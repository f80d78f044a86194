import { isJsonObject, type StructuralSchema, setOwn } from '../../object/index.ts'

const zeros: Readonly<Record<string, unknown>> = { string: '', integer: 0, number: 0, boolean: false }

/**
 * Replaces null items of maps and lists by the zero value that Go's decoder gives them: '', 0, false. Null fields stay; they are
 * dropped later. The argument is not changed; it is returned itself when it has no such null.
 */
export function nullsToZero(schema: StructuralSchema | undefined, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || schema === undefined) return value
  if (Array.isArray(value)) {
    const { items } = schema
    if (items === undefined) return value
    let list: unknown[] | undefined
    for (let index = 0; index < value.length; index++) {
      const next = zeroItem(items, value[index])
      if (next === value[index]) continue
      list ??= value.slice()
      list[index] = next
    }
    return list ?? value
  }
  if (!isJsonObject(value)) return value
  const { properties, additionalProperties } = schema
  const ofItems = typeof additionalProperties === 'object' ? additionalProperties : undefined
  let object: Record<string, unknown> | undefined
  for (const name of Object.keys(value)) {
    const known = properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined
    const next = known ? nullsToZero(known, value[name]) : zeroItem(ofItems, value[name])
    if (next === value[name]) continue
    object ??= { ...value }
    setOwn(object, name, next)
  }
  return object ?? value
}

function zeroItem(schema: StructuralSchema | undefined, value: unknown): unknown {
  if (value !== null) return nullsToZero(schema, value)
  const zero = schema?.type !== undefined && schema.nullable !== true ? zeros[schema.type] : undefined
  return zero ?? value
}
