import { getOwn, isJsonObject } from '../object/json.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'

/** The granularity of ownership: a leaf is owned as a whole, a map by field, a list (of type set or map) by item. */
export type Shape = 'leaf' | 'map' | 'list'

/** Undefined without a schema: maps are granular and lists atomic, as upstream's "deduced" type. */
export type FieldSchema = StructuralSchema | undefined

const metadataSchema: StructuralSchema = {
  type: 'object',
  'x-kubernetes-preserve-unknown-fields': true,
  properties: {
    name: { type: 'string' },
    namespace: { type: 'string' },
    generateName: { type: 'string' },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
    annotations: { type: 'object', additionalProperties: { type: 'string' } },
    finalizers: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
    ownerReferences: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
      items: {
        type: 'object',
        'x-kubernetes-map-type': 'atomic',
        properties: { uid: { type: 'string' } },
      },
    },
  },
}

const rootOfUnknown: StructuralSchema = {
  type: 'object',
  'x-kubernetes-preserve-unknown-fields': true,
  properties: { metadata: metadataSchema },
}
const roots = new WeakMap<StructuralSchema, StructuralSchema>()

/** `schema` with the standard metadata, regardless of what a CRD specifies for it. */
export function rootSchema(schema: StructuralSchema | undefined): StructuralSchema {
  if (schema === undefined) return rootOfUnknown
  let root = roots.get(schema)
  if (root === undefined) {
    root = { ...schema, properties: { ...schema.properties, metadata: metadataSchema } }
    roots.set(schema, root)
  }
  return root
}

export function shapeOf(schema: FieldSchema, value: unknown): Shape {
  if (typeof value !== 'object' || value === null) return 'leaf'
  if (Array.isArray(value)) {
    if (schema?.type !== 'array') return 'leaf'
    const listType = schema['x-kubernetes-list-type']
    return listType === 'map' || listType === 'set' ? 'list' : 'leaf'
  }
  if (schema?.['x-kubernetes-map-type'] === 'atomic') return 'leaf'
  return schema?.type === undefined || schema.type === 'object' ? 'map' : 'leaf'
}

export function fieldSchema(schema: FieldSchema, name: string): FieldSchema {
  if (schema === undefined) return undefined
  const known = getOwn(schema.properties, name)
  if (known !== undefined) return known
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
}

/** True if `name` is a property of the schema, not a key of a map: properties on the path to a member are not owned. */
export function isNamedField(schema: FieldSchema, name: string): boolean {
  return schema?.properties !== undefined && Object.hasOwn(schema.properties, name)
}

/** Path elements of items of map lists, while {@link rememberingElements} runs. */
let elements: WeakMap<object, { readonly schema: StructuralSchema; readonly element: string | undefined }> | undefined

/** Runs synchronous `work`, which does not change items, so that the path element of each item is computed once. */
export function rememberingElements<T>(work: () => T): T {
  elements = new WeakMap()
  try {
    return work()
  } finally {
    elements = undefined
  }
}

/** The path element of a list item; undefined for an item of a set that is not a scalar, or of a map list without keys. */
export function itemElement(schema: StructuralSchema, item: unknown): string | undefined {
  if (schema['x-kubernetes-list-type'] === 'set') {
    return typeof item === 'object' || item === undefined ? undefined : `v:${JSON.stringify(item)}`
  }
  if (!isJsonObject(item)) return undefined
  const known = elements?.get(item)
  if (known?.schema === schema) return known.element
  const element = keyElement(schema, item)
  elements?.set(item, { schema, element })
  return element
}

function keyElement(schema: StructuralSchema, item: Record<string, unknown>): string | undefined {
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  let text = ''
  for (const key of keys.length > 1 ? keys.toSorted() : keys) {
    const value = getOwn(item, key) ?? getOwn(schema.items?.properties, key)?.default
    if (value !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${JSON.stringify(value)}`
  }
  return text === '' ? undefined : `k:{${text}}`
}

/** The path element of each item of a list; elements that several items share are in `duplicates`. */
export function listElements(schema: StructuralSchema, list: readonly unknown[]) {
  const byElement = new Map<string, unknown>()
  const elements: (string | undefined)[] = []
  let duplicates: Set<string> | undefined
  for (const item of list) {
    const element = itemElement(schema, item)
    elements.push(element)
    if (element === undefined) continue
    if (byElement.has(element)) {
      duplicates ??= new Set()
      duplicates.add(element)
    } else byElement.set(element, item)
  }
  return { elements, byElement, duplicates }
}
