import { getOwn, isJsonObject } from '../object/json.ts'
import type { JsonObject } from '../object/object.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { compareObjects, withoutUntracked } from './compare-objects.ts'
import { difference, type FieldSet } from './field-set.ts'
import { toFieldSet } from './to-field-set.ts'

/** Where `kubectl apply` without `--server-side` keeps what it applied. */
const annotation = 'kubectl.kubernetes.io/last-applied-configuration'
/** The one manager that takes over from it; whoever wants none of this takes another name. */
const kubectl = 'kubectl'
const maxAnnotationBytes = 256 * 1024

/**
 * The fields that `manager` may take without a conflict, because client-side apply set them and nobody has changed
 * them since. Undefined when there are none.
 */
export function inheritedFields(manager: string, live: JsonObject | undefined, schema: StructuralSchema, apiVersion: string): FieldSet {
  const text = manager === kubectl ? lastApplied(live) : undefined
  if (live === undefined || text === undefined) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // A person wrote it: then it says nothing.
  }
  if (!isJsonObject(value) || value.apiVersion !== apiVersion) return undefined
  const { changed, removed } = compareObjects(schema, value, live)
  return difference(difference(withoutUntracked(toFieldSet(schema, value)), changed), removed)
}

/** `object` with the annotation saying what was applied now, if it has one at all, for those who still read it. */
export function withLastApplied(object: JsonObject, manager: string, applied: JsonObject): JsonObject {
  const before = manager === kubectl ? lastApplied(object) : undefined
  if (before === undefined) return object
  const text = formatApplied(applied)
  if (text === before) return object
  const metadata = object.metadata as JsonObject
  const annotations: JsonObject = { ...(metadata.annotations as JsonObject), [annotation]: text }
  if (sizeOf(annotations) > maxAnnotationBytes) delete annotations[annotation]
  return { ...object, metadata: { ...metadata, annotations } }
}

function lastApplied(object: JsonObject | undefined): string | undefined {
  const metadata = object?.metadata
  const annotations = isJsonObject(metadata) ? metadata.annotations : undefined
  const text = isJsonObject(annotations) ? getOwn(annotations, annotation) : undefined
  return typeof text === 'string' && text !== '' ? text : undefined
}

/** As kubectl writes it: sorted keys, a line. */
function formatApplied(applied: JsonObject): string {
  const metadata = applied.metadata as JsonObject | undefined
  const { [annotation]: _, ...annotations } = (metadata?.annotations ?? {}) as JsonObject
  const said = metadata?.annotations ? { ...applied, metadata: { ...metadata, annotations } } : applied
  return `${escapeHtml(JSON.stringify(said, sorted))}\n`
}

function sorted(_key: string, value: unknown): unknown {
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map(key => [key, value[key]]),
  )
}

// Go's encoder does so.
function escapeHtml(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function sizeOf(annotations: JsonObject): number {
  let bytes = 0
  for (const [key, value] of Object.entries(annotations)) bytes += key.length + new TextEncoder().encode(String(value)).length
  return bytes
}
