import { isJsonObject } from '../object/json.ts'
import type { JsonObject } from '../object/object.ts'
import { badRequest } from '../object/status-error.ts'
import { type FieldSchema, fieldSchema, isNamedField, listElements, shapeOf } from './field-schema.ts'
import { type FieldSet, nodeOf } from './field-set.ts'

/**
 * The paths that a manager owns by applying `value`: every leaf, every item, every key of a map, but not the properties
 * on the path to them.
 * @throws {StatusError} BadRequest when `isStrict` and two items of a list have the same key, or one has none.
 */
export function toFieldSet(schema: FieldSchema, value: unknown, isStrict = false): FieldSet {
  return collect(schema, value, isStrict ? 'strict' : 'owned', '')
}

/** Every path of `value`, including containers: the paths that are added or removed with it as a whole. */
export function allPaths(schema: FieldSchema, value: unknown): FieldSet {
  return collect(schema, value, 'every', '')
}

/** Like {@link toFieldSet}, but including empty lists, which may be owned without items. */
export function remainingFields(schema: FieldSchema, value: unknown): FieldSet {
  return collect(schema, value, 'remaining', '')
}

type Mode = 'owned' | 'strict' | 'every' | 'remaining'

function collect(schema: FieldSchema, value: unknown, mode: Mode, path: string): FieldSet {
  const isStrict = mode === 'strict'
  let set: JsonObject | undefined
  switch (shapeOf(schema, value)) {
    case 'leaf':
      return undefined
    case 'map': {
      const map = value as Record<string, unknown>
      for (const name of Object.keys(map)) {
        const child = map[name]
        if (child === undefined) continue
        const childSchema = fieldSchema(schema, name)
        const children = collect(childSchema, child, mode, isStrict ? `${path}.${name}` : '')
        const shape = shapeOf(childSchema, child)
        const isOwned =
          mode === 'every' ||
          shape === 'leaf' ||
          (shape === 'map' && isEmptyObject(child)) ||
          (mode === 'remaining' && shape === 'list' && (child as unknown[]).length === 0) ||
          !isNamedField(schema, name)
        const node = nodeOf(isOwned, children)
        if (node === undefined) continue
        set ??= {}
        set[`f:${name}`] = node
      }
      return set
    }
    case 'list': {
      const list = value as unknown[]
      const { elements, duplicates } = listElements(schema!, list)
      for (const [index, element] of elements.entries()) {
        if (isStrict && element === undefined) throw badRequest(`${path}: element ${index}: it must have ${neededKeys(schema)}`)
        if (element === undefined) continue
        const isDuplicate = duplicates?.has(element) === true
        if (isStrict && isDuplicate) throw badRequest(`${path}: duplicate entries for key ${element.slice(2)}`)
        const children = isDuplicate ? undefined : collect(schema!.items, list[index], mode, path)
        set ??= {}
        set[element] = nodeOf(true, children)!
      }
      return set
    }
  }
}

const isEmptyObject = (value: unknown) => isJsonObject(value) && Object.keys(value).length === 0

function neededKeys(schema: FieldSchema): string {
  if (schema?.['x-kubernetes-list-type'] === 'set') return 'a scalar value'
  return `at least one of the keys ${(schema?.['x-kubernetes-list-map-keys'] ?? []).join(', ')}`
}

/** Adds every property on the path to a member as a member, so that emptied structs are removed with their contents. */
export function withNamedFields(schema: FieldSchema, set: FieldSet): FieldSet {
  if (set === undefined) return undefined
  const result: JsonObject = {}
  for (const element of Object.keys(set)) {
    const node = set[element] as JsonObject
    if (element === '.') {
      result[element] = node
      continue
    }
    const isField = element.startsWith('f:')
    const name = element.slice(2)
    const next = withNamedFields(isField ? fieldSchema(schema, name) : schema?.items, node) ?? node
    result[element] = isField && isNamedField(schema, name) ? nodeOf(true, Object.keys(next).length > 0 ? next : undefined)! : next
  }
  return result
}
