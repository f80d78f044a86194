import { cloneJson, equalJson, isJsonObject } from './json.ts'
import type { KubeObject } from './object.ts'

/** The server writes these on every change, so they are not part of what a manifest asks for. */
const serverFields = ['managedFields', 'resourceVersion', 'generation', 'creationTimestamp', 'uid', 'selfLink'] as const

/** An object without its status and without the fields that only the server writes. */
export function desiredFields(object: KubeObject): Record<string, unknown> {
  const { status: _, ...rest } = cloneJson(object)
  const metadata: Record<string, unknown> = { ...rest.metadata }
  for (const field of serverFields) delete metadata[field]
  return { ...rest, metadata }
}

/**
 * Paths of the fields that differ, such as `spec.replicas` or `data.key`, at most four levels deep, sorted. Only paths, never values:
 * the object may be a Secret (invariant 9).
 */
export function changedFields(before: unknown, after: unknown, path = '', depth = 0): string[] {
  if (equalJson(before, after)) return []
  if (depth >= 4 || !isJsonObject(before) || !isJsonObject(after)) return [path]
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
  return keys.flatMap(key => changedFields(before[key], after[key], path === '' ? key : `${path}.${key}`, depth + 1))
}
