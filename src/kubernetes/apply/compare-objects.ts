import { equalJson } from '../object/json.ts'
import type { JsonObject } from '../object/object.ts'
import { type FieldSchema, fieldSchema, listElements, shapeOf } from './field-schema.ts'
import { type FieldSet, memberNode, nodeOf } from './field-set.ts'
import { allPaths } from './to-field-set.ts'

/** The fields that differ: `changed` were added or have another value, `removed` no longer exist. */
export type Comparison = { changed: FieldSet; removed: FieldSet }

const none: Comparison = Object.freeze({ changed: undefined, removed: undefined })

/** Fields of metadata that no manager owns. */
const untrackedMetadata = new Set([
  'name',
  'namespace',
  'creationTimestamp',
  'selfLink',
  'uid',
  'clusterName',
  'generation',
  'managedFields',
  'resourceVersion',
])

/** The difference of two whole objects, without untracked fields. Equal parts cost only a walk. */
export function compareObjects(schema: FieldSchema, before: Record<string, unknown>, after: Record<string, unknown>): Comparison {
  let result = none
  for (const name of fieldNames(before, after)) {
    if (name === 'apiVersion' || name === 'kind') continue
    const [left, right] = [before[name], after[name]]
    if (name !== 'metadata') {
      result = add(result, `f:${name}`, compareFields(fieldSchema(schema, name), left, right))
      continue
    }
    const metadata = compareMaps(fieldSchema(schema, name), (left ?? {}) as JsonObject, (right ?? {}) as JsonObject, untrackedMetadata)
    result = add(result, 'f:metadata', metadata)
  }
  return result
}

/** `set` without untracked fields. */
export function withoutUntracked(set: FieldSet): FieldSet {
  if (set === undefined) return undefined
  const { 'f:apiVersion': _apiVersion, 'f:kind': _kind, 'f:metadata': metadata, ...rest } = set
  if (metadata !== undefined) {
    const kept = Object.entries(metadata as JsonObject).filter(([key]) => key !== '.' && !untrackedMetadata.has(key.slice(2)))
    if (kept.length > 0) rest['f:metadata'] = Object.fromEntries(kept)
  }
  return Object.keys(rest).length > 0 ? rest : undefined
}

function* fieldNames(before: Record<string, unknown>, after: Record<string, unknown>): Generator<string> {
  for (const name of Object.keys(after)) if (after[name] !== undefined) yield name
  for (const name of Object.keys(before)) {
    if (before[name] !== undefined && !(Object.hasOwn(after, name) && after[name] !== undefined)) yield name
  }
}

function add(result: Comparison, element: string, part: Comparison): Comparison {
  if (part === none) return result
  const next = result === none ? { changed: undefined, removed: undefined } : result
  if (part.changed !== undefined) {
    next.changed ??= {}
    next.changed[element] = part.changed
  }
  if (part.removed !== undefined) {
    next.removed ??= {}
    next.removed[element] = part.removed
  }
  return next
}

/** Works on nodes, not roots: a bare node is the field itself. */
function compareFields(schema: FieldSchema, left: unknown, right: unknown): Comparison {
  if (left === right) return none
  if (left === undefined) return { changed: nodeOf(true, allPaths(schema, right)), removed: undefined }
  if (right === undefined) return { changed: undefined, removed: nodeOf(true, allPaths(schema, left)) }
  const [leftShape, rightShape] = [shapeOf(schema, left), shapeOf(schema, right)]
  // Go encodes an empty list or map as null: its new members are the changes.
  if (left === null && rightShape !== 'leaf') return compareFields(schema, rightShape === 'map' ? {} : [], right)
  if (right === null && leftShape !== 'leaf') return compareFields(schema, left, leftShape === 'map' ? {} : [])
  if (leftShape === 'map' && rightShape === 'map') return compareMaps(schema, left as JsonObject, right as JsonObject)
  if (leftShape === 'list' && rightShape === 'list') return compareLists(schema, left as unknown[], right as unknown[])
  if (leftShape === 'leaf' && rightShape === 'leaf') return equalJson(left, right) ? none : { changed: memberNode, removed: undefined }
  // A different shape: the field changed, everything below it was removed, everything below the new value was added.
  return { changed: nodeOf(true, allPaths(schema, right)), removed: nodeOf(false, allPaths(schema, left)) }
}

function compareMaps(schema: FieldSchema, left: JsonObject, right: JsonObject, except?: ReadonlySet<string>): Comparison {
  let result = none
  for (const name of Object.keys(right)) {
    const next = right[name]
    if (next === undefined || except?.has(name)) continue
    const old = Object.hasOwn(left, name) ? left[name] : undefined
    if (old !== next) result = add(result, `f:${name}`, compareFields(fieldSchema(schema, name), old, next))
  }
  for (const name of Object.keys(left)) {
    if (left[name] === undefined || except?.has(name)) continue
    if (Object.hasOwn(right, name) && right[name] !== undefined) continue
    result = add(result, `f:${name}`, compareFields(fieldSchema(schema, name), left[name], undefined))
  }
  return result
}

function compareLists(schema: FieldSchema, left: unknown[], right: unknown[]): Comparison {
  if (equalJson(left, right)) return none
  const before = listElements(schema!, left)
  const after = listElements(schema!, right)
  let result = none
  for (const element of new Set([...before.byElement.keys(), ...after.byElement.keys()])) {
    const wasDuplicate = before.duplicates?.has(element) === true
    const isDuplicate = after.duplicates?.has(element) === true
    if (!wasDuplicate && !isDuplicate) {
      const part = compareFields(schema!.items, before.byElement.get(element), after.byElement.get(element))
      result = add(result, element, part)
      continue
    }
    // Items that share a key are owned together, as one leaf.
    const all = (list: unknown[], elements: (string | undefined)[]) => list.filter((_, index) => elements[index] === element)
    if (!equalJson(all(left, before.elements), all(right, after.elements))) {
      result = add(
        result,
        element,
        after.byElement.has(element) ? { changed: memberNode, removed: undefined } : { changed: undefined, removed: memberNode },
      )
    }
  }
  return result
}
