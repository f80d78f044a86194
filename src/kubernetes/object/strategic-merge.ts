import { cloneJson, getOwn, isJsonObject, setOwn, stableJson } from './json.ts'
import type { Json } from './object.ts'
import { badRequest } from './status-error.ts'
import type { StructuralSchema } from './structural-schema.ts'

type JsonMap = { [key: string]: Json }

/** Undefined for fields without a schema: maps merge, lists are replaced. */
type Schema = StructuralSchema | undefined

const metadata: StructuralSchema = {
  type: 'object',
  properties: {
    finalizers: { type: 'array', items: { type: 'string' }, 'x-kubernetes-patch-strategy': 'merge' },
    ownerReferences: {
      type: 'array',
      items: { type: 'object' },
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'uid',
    },
  },
}

/**
 * Kubernetes' strategic merge patch with the patch strategies and merge keys of `schema`. Lists without the strategy `merge` are
 * replaced, and so are maps with the strategy `replace`; lists of primitive values merge as sets. Supports
 * `$patch: replace | delete | merge`, `$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>` and `$retainKeys`.
 * https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
 * @param schema of the whole object; metadata merges like that of every object.
 * @throws {StatusError} BadRequest for an unknown directive or an element without its merge key.
 */
export function applyStrategicPatch(live: Json, patch: Json, schema: StructuralSchema): Json {
  const whole: StructuralSchema = { ...schema, properties: { ...schema.properties, metadata } }
  return mergeMap(isJsonObject(live) ? (live as JsonMap) : {}, patch as JsonMap, whole) ?? {}
}

/** The merge key of a list, `''` for a set of primitive values; undefined for a list that is replaced. */
function mergeKeyOf(schema: Schema): string | undefined {
  if (!schema?.['x-kubernetes-patch-strategy']?.split(',').includes('merge')) return undefined
  return schema['x-kubernetes-patch-merge-key'] ?? ''
}

function childOf(schema: Schema, name: string): Schema {
  const known = getOwn(schema?.properties, name)
  if (known) return known
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined
}

function mergeMap(live: JsonMap, patch: JsonMap, schema: Schema): JsonMap | undefined {
  const directive = patch.$patch
  if (directive === 'delete') return undefined
  if (directive === 'replace') return withoutDirectives(patch)
  if (directive !== undefined && directive !== 'merge') throw badRequest(`unknown patch directive $patch: ${JSON.stringify(directive)}`)
  let result: JsonMap = { ...live }
  if (Array.isArray(patch.$retainKeys)) {
    const retained = new Set(patch.$retainKeys)
    result = Object.fromEntries(Object.entries(result).filter(([key]) => retained.has(key)))
  }
  for (const key of Object.keys(patch)) {
    if (key.startsWith('$')) continue
    const value = patch[key]!
    const child = childOf(schema, key)
    const mergeKey = mergeKeyOf(child)
    const old = Object.hasOwn(live, key) ? live[key] : undefined
    if (value === null) delete result[key]
    else if (isJsonObject(value) && child?.['x-kubernetes-patch-strategy'] === 'replace')
      setOwn(result, key, withoutDirectives(value as JsonMap))
    else if (isJsonObject(value)) {
      const merged = mergeMap(isJsonObject(old) ? (old as JsonMap) : {}, value as JsonMap, child)
      if (merged === undefined) delete result[key]
      else setOwn(result, key, merged)
    } else if (Array.isArray(value) && mergeKey !== undefined) {
      const before = Array.isArray(old) ? old : []
      const merged = mergeList(before, value, mergeKey, child?.items)
      const isOrdered = Object.hasOwn(patch, `$setElementOrder/${key}`)
      setOwn(result, key, isOrdered ? merged : patchFirst(merged, value, before, mergeKey))
    } else setOwn(result, key, cloneJson(value))
  }
  for (const [key, value] of Object.entries(patch)) {
    if (!key.startsWith('$deleteFromPrimitiveList/') || !Array.isArray(value)) continue
    const field = key.slice(key.indexOf('/') + 1)
    const list = result[field]
    const deleted = new Set(value.map(stableJson))
    if (Array.isArray(list))
      setOwn(
        result,
        field,
        list.filter(item => !deleted.has(stableJson(item))),
      )
  }
  for (const [key, value] of Object.entries(patch)) {
    if (!key.startsWith('$setElementOrder/') || !Array.isArray(value)) continue
    const field = key.slice(key.indexOf('/') + 1)
    const list = result[field]
    if (Array.isArray(list)) setOwn(result, field, inOrder(list, value, mergeKeyOf(childOf(schema, field)) ?? ''))
  }
  return result
}

function mergeList(live: Json[], patch: Json[], mergeKey: string, items: Schema): Json[] {
  if (mergeKey === '') {
    const present = new Set(live.map(stableJson))
    return [...live, ...patch.filter(item => !present.has(stableJson(item)))]
  }
  if (patch.some(item => isJsonObject(item) && item.$patch === 'replace')) {
    return patch.filter(item => !(isJsonObject(item) && item.$patch === 'replace')).map(item => cloneJson(item))
  }
  const result: (Json | undefined)[] = [...live]
  // Indexes of each key in reverse: of several items with the same key, the patch changes the first, and the next one after that is
  // deleted.
  const indexes = new Map<string, number[]>()
  for (let index = live.length - 1; index >= 0; index--) {
    const item = live[index]!
    if (!isJsonObject(item)) continue
    const id = stableJson(item[mergeKey])
    const known = indexes.get(id)
    if (known) known.push(index)
    else indexes.set(id, [index])
  }
  for (const item of patch) {
    const id = isJsonObject(item) ? (item as JsonMap)[mergeKey] : undefined
    if (id === undefined) throw badRequest(`map: ${JSON.stringify(item)?.slice(0, 200)} does not contain declared merge key: ${mergeKey}`)
    const found = indexes.get(stableJson(id))
    const index = found?.at(-1)
    const merged = mergeMap(index === undefined ? {} : (result[index] as JsonMap), item as JsonMap, items)
    if (merged === undefined) {
      if (index !== undefined) result[index] = undefined
      found?.pop()
    } else if (index === undefined) indexes.set(stableJson(merged[mergeKey]), [result.push(merged) - 1])
    else result[index] = merged
  }
  return result.filter(item => item !== undefined)
}

// As in Kubernetes: items in the patch keep the patch's order, the others keep theirs, and new items come first.
function patchFirst(merged: Json[], patch: Json[], live: Json[], mergeKey: string): Json[] {
  const idOf = (item: Json) => JSON.stringify(mergeKey && isJsonObject(item) ? ((item as JsonMap)[mergeKey] ?? item) : item)
  const byId = new Map(merged.map(item => [idOf(item), item]))
  const named = new Set(patch.map(idOf))
  const indexes = new Map(live.map((item, index) => [idOf(item), index]))
  const right = [...named].filter(id => byId.has(id))
  const left = merged.map(idOf).filter(id => !named.has(id))
  const order: string[] = []
  let [l, r] = [0, 0]
  while (l < left.length && r < right.length) {
    const at = indexes.get(left[l]!)
    const other = indexes.get(right[r]!)
    order.push(at !== undefined && other !== undefined && at < other ? left[l++]! : right[r++]!)
  }
  return [...order, ...left.slice(l), ...right.slice(r)].map(id => byId.get(id)!)
}

// Items that the order does not list stay after the item they followed.
function inOrder(list: Json[], order: Json[], mergeKey: string): Json[] {
  const idOf = (item: Json) => (mergeKey && isJsonObject(item) ? ((item as JsonMap)[mergeKey] ?? item) : item)
  const indexes = new Map(order.map((item, index) => [JSON.stringify(idOf(item)), index]))
  let last = -1
  const ranked = list.map(item => {
    last = indexes.get(JSON.stringify(idOf(item))) ?? last
    return { item, rank: last }
  })
  return ranked
    .map((entry, index) => ({ ...entry, index }))
    .sort((a, b) => a.rank - b.rank || a.index - b.index)
    .map(({ item }) => item)
}

function withoutDirectives(patch: JsonMap): JsonMap {
  return Object.fromEntries(Object.entries(patch).filter(([key]) => !key.startsWith('$'))) as JsonMap
}
