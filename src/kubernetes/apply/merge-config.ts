import { equalJson, setOwn } from '../object/json.ts'
import type { Json } from '../object/object.ts'
import { type FieldSchema, fieldSchema, listElements, shapeOf } from './field-schema.ts'

/**
 * Merges `config` into `live`: maps by field, lists of type set and map by item, everything else is replaced. A null for a
 * map or such a list leaves it unchanged. Every equal part is the same value as in `live`.
 */
export function mergeConfig(schema: FieldSchema, live: Json | undefined, config: Json | undefined): Json | undefined {
  if (config === undefined || live === config) return live
  if (live === undefined) return config
  const [liveShape, configShape] = [shapeOf(schema, live), shapeOf(schema, config)]
  if (config === null && liveShape !== 'leaf') return live
  if (liveShape !== configShape || configShape === 'leaf') return equalJson(live, config) ? live : config
  return configShape === 'map'
    ? mergeMaps(schema, live as { [key: string]: Json }, config as { [key: string]: Json })
    : mergeLists(schema, live as Json[], config as Json[])
}

function mergeMaps(schema: FieldSchema, live: { [key: string]: Json }, config: { [key: string]: Json }): Json {
  let result: { [key: string]: Json } | undefined
  for (const name of Object.keys(config)) {
    const before = Object.hasOwn(live, name) ? live[name] : undefined
    const next = mergeConfig(fieldSchema(schema, name), before, config[name])
    if (next === undefined || next === before) continue
    result ??= { ...live }
    setOwn(result, name, next)
  }
  return result ?? live
}

/** Items of the configuration keep its order; items of the live list only keep their position between them where possible. */
function mergeLists(schema: FieldSchema, live: Json[], config: Json[]): Json[] {
  const before = listElements(schema!, live)
  const applied = listElements(schema!, config)
  const merged: Json[] = []
  const done = new Set<string>()
  const shared = applied.elements.filter(element => element !== undefined && before.byElement.has(element))
  const mergeItem = (element: string | undefined, item: Json): Json => {
    if (element === undefined || before.duplicates?.has(element)) return item
    return mergeConfig(schema!.items, before.byElement.get(element) as Json | undefined, item)!
  }
  let left = 0
  let right = 0
  let next = 0
  while (left < live.length || right < config.length) {
    const leftElement = before.elements[left]
    const rightElement = applied.elements[right]
    if (left < live.length && right < config.length) {
      if (leftElement === rightElement && leftElement !== undefined) {
        merged.push(mergeItem(rightElement, config[right]!))
        done.add(leftElement)
        left++
        right++
        next++
        continue
      }
      if (leftElement !== undefined && applied.byElement.has(leftElement) && next < shared.length && shared[next] !== leftElement) {
        // Shared, but not next in the order of the configuration: it is added with the configuration's item.
        left++
        continue
      }
    }
    if (left < live.length) {
      if (leftElement === undefined || !applied.byElement.has(leftElement)) {
        merged.push(live[left]!)
        left++
        continue
      }
      if (done.has(leftElement)) left++
    }
    if (right < config.length) {
      merged.push(mergeItem(rightElement, config[right]!))
      if (rightElement !== undefined) done.add(rightElement)
      if (rightElement !== undefined && shared[next] === rightElement) next++
      right++
    }
  }
  return merged.length === live.length && merged.every((item, index) => item === live[index]) ? live : merged
}
