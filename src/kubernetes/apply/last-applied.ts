import { getOwn, isJsonObject } from '../object/json.ts'
import type { JsonObject } from '../object/object.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { compareObjects, withoutUntracked } from './compare-objects.ts'
import { difference, type FieldSet } from './field-set.ts'
import { toFieldSet } from './to-field-set.ts'

/** The annotation in which `kubectl apply` without `--server-side` stores its configuration. */
const annotation = 'kubectl.kubernetes.io/last-applied-configuration'
/** The only manager to which this applies; any other name disables it. */
const kubectl = 'kubectl'
const maxAnnotationBytes = 256 * 1024

/**
 * The fields that `manager` may take over without a conflict, because client-side apply set them and they have not changed
 * since. Undefined if there are none.
 */
export function inheritedFields(manager: string, live: JsonObject | undefined, schema: StructuralSchema, apiVersion: string): FieldSet {
  const text = manager === kubectl ? lastApplied(live) : undefined
  if (live === undefined || text === undefined) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // Edited manually: ignored.
  }
  if (!isJsonObject(value) || value.apiVersion !== apiVersion) return undefined
  const { changed, removed } = compareObjects(schema, value, live)
  return difference(difference(withoutUntracked(toFieldSet(schema, value)), changed), removed)
}

/** Updates the annotation, if the object has it, for clients that still use client-side apply. */
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

/** In kubectl's format: sorted keys, on one line. */
function formatApplied(applied: JsonObject): string {
  const metadata = applied.metadata as JsonObject | undefined
  const { [annotation]: _, ...annotations } = (metadata?.annotations ?? {}) as JsonObject
  const configuration = metadata?.annotations ? { ...applied, metadata: { ...metadata, annotations } } : applied
  return `${escapeHtml(JSON.stringify(configuration, sorted))}\n`
}

function sorted(_key: string, value: unknown): unknown {
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map(key => [key, value[key]]),
  )
}

// As Go's encoder does.
function escapeHtml(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function sizeOf(annotations: JsonObject): number {
  let bytes = 0
  for (const [key, value] of Object.entries(annotations)) bytes += key.length + new TextEncoder().encode(String(value)).length
  return bytes
}
