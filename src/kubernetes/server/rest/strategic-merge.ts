import { badRequest, cloneJson, getOwn, isJsonObject, type Json, type StructuralSchema, setOwn, stableJson } from '../../object/index.ts'

type JsonMap = { [key: string]: Json }

/** What is below is not known: maps merge, lists are replaced. */
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
 * Kubernetes' strategic merge patch by the patch strategies and merge keys of `schema`: lists whose strategy is not to
 * merge are replaced, as are maps whose strategy is to replace; lists of plain values merge as sets. Knows `$patch: replace | delete | merge`,
 * `$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>` and `$retainKeys`.
 * https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
 * @param schema of the whole object; its metadata merges as that of every object.
 * @throws {StatusError} BadRequest for an unknown directive or an element without its merge key.
 */
export function applyStrategicPatch(live: Json, patch: Json, schema: StructuralSchema): Json {
  const whole: StructuralSchema = { ...schema, properties: { ...schema.properties, metadata } }
  return mergeMap(isJsonObject(live) ? (live as JsonMap) : {}, patch as JsonMap, whole) ?? {}
}

/** The key that items of a list merge by, `''` for sets of plain values; undefined for lists that are replaced. */
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
    const gone = new Set(value.map(stableJson))
    if (Array.isArray(list))
      setOwn(
        result,
        field,
        list.filter(item => !gone.has(stableJson(item))),
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
    const there = new Set(live.map(stableJson))
    return [...live, ...patch.filter(item => !there.has(stableJson(item)))]
  }
  if (patch.some(item => isJsonObject(item) && item.$patch === 'replace')) {
    return patch.filter(item => !(isJsonObject(item) && item.$patch === 'replace')).map(item => cloneJson(item))
  }
  const result: (Json | undefined)[] = [...live]
  // Places of each key, the first one last: of items that share one the first is meant, and the next when that was deleted.
  const places = new Map<string, number[]>()
  for (let place = live.length - 1; place >= 0; place--) {
    const item = live[place]!
    if (!isJsonObject(item)) continue
    const id = stableJson(item[mergeKey])
    const known = places.get(id)
    if (known) known.push(place)
    else places.set(id, [place])
  }
  for (const item of patch) {
    const id = isJsonObject(item) ? (item as JsonMap)[mergeKey] : undefined
    if (id === undefined) throw badRequest(`map: ${JSON.stringify(item)?.slice(0, 200)} does not contain declared merge key: ${mergeKey}`)
    const found = places.get(stableJson(id))
    const place = found?.at(-1)
    const merged = mergeMap(place === undefined ? {} : (result[place] as JsonMap), item as JsonMap, items)
    if (merged === undefined) {
      if (place !== undefined) result[place] = undefined
      found?.pop()
    } else if (place === undefined) places.set(stableJson(merged[mergeKey]), [result.push(merged) - 1])
    else result[place] = merged
  }
  return result.filter(item => item !== undefined)
}

// As in Kubernetes: what the patch names keeps the patch's order, the rest its own, and what is new comes before the rest.
function patchFirst(merged: Json[], patch: Json[], live: Json[], mergeKey: string): Json[] {
  const idOf = (item: Json) => JSON.stringify(mergeKey && isJsonObject(item) ? ((item as JsonMap)[mergeKey] ?? item) : item)
  const byId = new Map(merged.map(item => [idOf(item), item]))
  const named = new Set(patch.map(idOf))
  const places = new Map(live.map((item, index) => [idOf(item), index]))
  const right = [...named].filter(id => byId.has(id))
  const left = merged.map(idOf).filter(id => !named.has(id))
  const order: string[] = []
  let [l, r] = [0, 0]
  while (l < left.length && r < right.length) {
    const at = places.get(left[l]!)
    const other = places.get(right[r]!)
    order.push(at !== undefined && other !== undefined && at < other ? left[l++]! : right[r++]!)
  }
  return [...order, ...left.slice(l), ...right.slice(r)].map(id => byId.get(id)!)
}

// Elements that the order does not name keep their place behind the one they followed.
function inOrder(list: Json[], order: Json[], mergeKey: string): Json[] {
  const idOf = (item: Json) => (mergeKey && isJsonObject(item) ? ((item as JsonMap)[mergeKey] ?? item) : item)
  const places = new Map(order.map((item, index) => [JSON.stringify(idOf(item)), index]))
  let last = -1
  const placed = list.map(item => {
    last = places.get(JSON.stringify(idOf(item))) ?? last
    return { item, place: last }
  })
  return placed
    .map((entry, index) => ({ ...entry, index }))
    .sort((a, b) => a.place - b.place || a.index - b.index)
    .map(({ item }) => item)
}

function withoutDirectives(patch: JsonMap): JsonMap {
  return Object.fromEntries(Object.entries(patch).filter(([key]) => !key.startsWith('$'))) as JsonMap
}
