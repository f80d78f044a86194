import { cloneJson, isJsonObject, setOwn } from './json.ts'
import type { Json } from './object.ts'

/**
 * Applies an RFC 7386 JSON Merge Patch and returns the new document: objects are merged, null deletes, everything else
 * replaces. Neither argument is changed. The result shares unpatched parts with `document`, so treat it as immutable too.
 */
export function applyMergePatch(document: Json, patch: Json): Json {
  if (!isJsonObject(patch)) return cloneJson(patch)
  const result: { [key: string]: Json } = isJsonObject(document) ? { ...document } : {}
  for (const key of Object.keys(patch)) {
    const value = patch[key] as Json
    if (value === null) delete result[key]
    else
      setOwn(result, key, isJsonObject(value) ? applyMergePatch(Object.hasOwn(result, key) ? result[key]! : null, value) : cloneJson(value))
  }
  return result
}
