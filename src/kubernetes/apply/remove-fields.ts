import { setOwn } from '../object/json.ts'
import type { Json } from '../object/object.ts'
import { type FieldSchema, fieldSchema, itemElement, shapeOf } from './field-schema.ts'
import { below, type FieldSet, hasMember } from './field-set.ts'

/** `value` without the members of `set`; the same value if it contains none. A container without remaining members stays, empty. */
export function removeFields(schema: FieldSchema, value: Json, set: FieldSet): Json {
  if (set === undefined) return value
  switch (shapeOf(schema, value)) {
    case 'leaf':
      return value
    case 'map': {
      const map = value as { [key: string]: Json }
      const result: { [key: string]: Json } = {}
      let isChanged = false
      for (const name of Object.keys(map)) {
        const element = `f:${name}`
        if (hasMember(set, element)) {
          isChanged = true
          continue
        }
        const next = removeFields(fieldSchema(schema, name), map[name]!, below(set, element))
        isChanged ||= next !== map[name]
        setOwn(result, name, next)
      }
      return isChanged ? result : value
    }
    case 'list': {
      const list = value as Json[]
      const result: Json[] = []
      let isChanged = false
      for (const item of list) {
        const element = itemElement(schema!, item)
        if (element !== undefined && hasMember(set, element)) {
          isChanged = true
          continue
        }
        const next = element === undefined ? item : removeFields(schema!.items, item, below(set, element))
        isChanged ||= next !== item
        result.push(next)
      }
      return isChanged ? result : value
    }
  }
}
