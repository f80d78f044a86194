import type { StructuralSchema } from '../object/structural-schema.ts'
import { type FieldSchema, fieldSchema, rootSchema, shapeOf } from './field-schema.ts'

/** The numbers of fields and of list items of an object that can have owners of their own: what its managedFields name. */
export type OwnedCount = { fields: number; items: number }

/** Counts what can be owned in `object`; stops above `limits`. The fields of an atomic map and the items of an atomic list are not counted. */
export function countOwned(schema: StructuralSchema | undefined, object: unknown, limits: OwnedCount): OwnedCount {
  const count = { fields: 0, items: 0 }
  const visit = (of: FieldSchema, value: unknown): void => {
    if (count.fields > limits.fields || count.items > limits.items) return
    const shape = shapeOf(of, value)
    if (shape === 'map') {
      const map = value as Record<string, unknown>
      const names = Object.keys(map)
      count.fields += names.length
      for (const name of names) if (typeof map[name] === 'object') visit(fieldSchema(of, name), map[name])
    } else if (shape === 'list') {
      const list = value as unknown[]
      count.items += list.length
      for (const item of list) visit(of?.items, item)
    }
  }
  visit(rootSchema(schema), object)
  return count
}
