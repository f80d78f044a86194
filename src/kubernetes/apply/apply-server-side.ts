import { rfc3339 } from '../object/condition.ts'
import { equalJson } from '../object/json.ts'
import type { Json, JsonObject, ManagedFieldsEntry } from '../object/object.ts'
import { badRequest } from '../object/status-error.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { compareObjects, withoutUntracked } from './compare-objects.ts'
import type { FieldConflict } from './conflict-error.ts'
import { rememberingElements, rootSchema } from './field-schema.ts'
import { difference, equalSets, type FieldSet, intersection, pathsOf, union } from './field-set.ts'
import { inheritedFields, withLastApplied } from './last-applied.ts'
import { type EntryKey, entryFields, isEntryOf, newEntry, readEntries, removeOwnership, sortEntries } from './managed-fields.ts'
import { mergeConfig } from './merge-config.ts'
import { removeFields } from './remove-fields.ts'
import { remainingFields, toFieldSet, withNamedFields } from './to-field-set.ts'
import { managedFieldsOf, trackUpdate } from './track-update.ts'

export type ApplyInput = {
  /** The stored object; undefined when the apply creates it. */
  live: JsonObject | undefined
  /** The configuration: only the fields that the manager sets, with apiVersion, kind and metadata.name. */
  applied: JsonObject
  /** The configuration as it was sent, for kubectl's annotation. Default: `applied`. */
  sent?: JsonObject
  manager: string
  /** Takes over fields of other managers instead of reporting conflicts. */
  force: boolean
  schema: StructuralSchema | undefined
  apiVersion: string
  subresource?: string
  /** Top-level fields this endpoint may not change, such as `['status']`, or `['metadata', 'spec']` for `/status`. */
  resetFields?: readonly string[]
  nowMs: number
}

export type ApplyResult = {
  /** `live` itself if nothing changed; with conflicts, the result that a forced apply would have. */
  object: JsonObject
  conflicts: FieldConflict[]
}

/**
 * Server-side apply as in Kubernetes: merges `applied` into `live`, removes fields that `manager` applied last time, no
 * longer applies and no other manager owns, and records the ownership in metadata.managedFields. The caller defaults and
 * validates the result. On conflicts without `force` the caller returns `conflictError` and stores nothing.
 * Neither `live` nor `applied` is changed; the result shares parts with both.
 * @throws {StatusError} BadRequest when `applied` has managedFields, another apiVersion, or a list with duplicate keys.
 */
export function applyServerSide(input: ApplyInput): ApplyResult {
  const { object, conflicts } = rememberingElements(() => merge(input))
  if (conflicts.length > 0) return { object, conflicts }
  return { object: withLastApplied(object, input.manager, input.sent ?? input.applied), conflicts }
}

function merge(input: ApplyInput): ApplyResult {
  const { live, manager, apiVersion, subresource, nowMs } = input
  const schema = rootSchema(input.schema)
  const config = readConfig(input)
  const everyApplied = toFieldSet(schema, config, true)
  const applied = withoutUntracked(everyApplied)
  const entries = liveEntries(input)
  const key: EntryKey = { manager, operation: 'Apply', apiVersion, subresource }
  const own = entries.find(entry => isEntryOf(entry, key))
  const last = own && entryFields(own)
  const others = own ? entries.filter(entry => entry !== own) : entries

  const base = withoutManagedFields(live ?? {})
  let merged = mergeConfig(schema, base, config) as JsonObject
  // Nothing is removed unless a previously applied field is no longer applied: the case of nearly all applies.
  if (difference(last, applied) !== undefined) merged = prune(schema, merged, last, union(everyApplied, identity), others)

  const { changed, removed } = compareObjects(schema, base, merged)
  let conflicts = input.force || changed === undefined ? [] : others.flatMap(entry => conflictsWith(entry, changed))
  if (conflicts.length > 0) {
    const inherited = inheritedFields(manager, live, schema, apiVersion)
    if (inherited) conflicts = others.flatMap(entry => conflictsWith(entry, difference(changed, inherited)))
  }
  const kept = removeOwnership(removeOwnership(others, changed), removed)

  const isChanged = changed !== undefined || removed !== undefined || !equalJson(base, merged)
  const isOwnSame = own !== undefined && !isChanged && own.apiVersion === apiVersion && equalSets(last, applied)
  if (live && isOwnSame && kept === others) return { object: live, conflicts: [] }
  const managedFields = [...kept]
  if (isOwnSame) managedFields.push(own)
  else if (applied !== undefined) managedFields.push(newEntry(key, applied, rfc3339(nowMs)))
  return { object: withManagedFields(merged, sortEntries(managedFields)), conflicts: sortConflicts(conflicts) }
}

function readConfig({ applied, apiVersion, resetFields = [] }: ApplyInput): JsonObject {
  const metadata = applied.metadata as JsonObject | undefined
  if (Array.isArray(metadata?.managedFields) && metadata.managedFields.length > 0) {
    throw badRequest('metadata.managedFields must be nil')
  }
  if (applied.apiVersion !== undefined && applied.apiVersion !== apiVersion) {
    throw badRequest(`Incorrect version specified in apply patch. Specified patch version: ${applied.apiVersion}, expected: ${apiVersion}`)
  }
  let config = metadata && 'managedFields' in metadata ? withoutManagedFields(applied) : applied
  for (const name of resetFields) {
    if (!(name in config)) continue
    const { [name]: _, ...rest } = config
    const { name: objectName, namespace } = metadata ?? {}
    config =
      name === 'metadata' ? { ...rest, metadata: { name: objectName, ...(namespace !== undefined && { namespace }) } as JsonObject } : rest
  }
  return config
}

/** All fields of an object without tracked managers belong to "before-first-apply". */
function liveEntries({ live, schema, apiVersion, nowMs }: ApplyInput): ManagedFieldsEntry[] {
  const entries = readEntries(managedFieldsOf(live)) ?? []
  if (live === undefined || entries.length > 0) return entries
  return trackUpdate({ before: undefined, after: withoutManagedFields(live), manager: 'before-first-apply', schema, apiVersion, nowMs })
}

/** Fields that no apply removes, regardless of their owner. */
const identity: FieldSet = { 'f:apiVersion': {}, 'f:kind': {}, 'f:metadata': { '.': {}, 'f:name': {}, 'f:namespace': {} } }

/**
 * Removes the members of `last` that no other manager owns and `applied` does not contain. The two passes are those of
 * upstream: the second restores what the first removed only because it was below a removed field.
 */
function prune(schema: StructuralSchema, merged: JsonObject, last: FieldSet, applied: FieldSet, others: ManagedFieldsEntry[]): JsonObject {
  const named = (set: FieldSet) => withNamedFields(schema, set)
  const remaining = (object: Json) => named(remainingFields(schema, object))
  const owned = others.reduce<FieldSet>((set, entry) => union(set, entryFields(entry)), applied)
  const lastNamed = named(last)
  const all = named(toFieldSet(schema, merged))
  const first = removeFields(schema, merged, lastNamed)
  const second = removeFields(schema, merged, difference(all, union(remaining(first), named(owned))))
  return removeFields(schema, merged, intersection(difference(all, remaining(second)), lastNamed)) as JsonObject
}

function conflictsWith(entry: ManagedFieldsEntry, changed: FieldSet): FieldConflict[] {
  const fields = pathsOf(intersection(entryFields(entry), changed))
  if (fields.length === 0) return []
  const subresource = entry.subresource ? ` with subresource ${JSON.stringify(entry.subresource)}` : ''
  const version = entry.operation === 'Update' ? ` using ${entry.apiVersion}` : ''
  return fields.map(field => ({ manager: `${JSON.stringify(entry.manager ?? '')}${subresource}${version}`, field }))
}

function sortConflicts(conflicts: FieldConflict[]): FieldConflict[] {
  return conflicts.sort((a, b) => (a.manager < b.manager ? -1 : a.manager > b.manager ? 1 : 0))
}

function withoutManagedFields(object: JsonObject): JsonObject {
  const metadata = object.metadata as JsonObject | undefined
  if (metadata?.managedFields === undefined) return object
  const { managedFields: _, ...rest } = metadata
  return { ...object, metadata: rest }
}

function withManagedFields(object: JsonObject, entries: ManagedFieldsEntry[]): JsonObject {
  return { ...object, metadata: { ...(object.metadata as JsonObject | undefined), managedFields: entries as Json } }
}
