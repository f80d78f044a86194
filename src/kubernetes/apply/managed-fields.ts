import { rfc3339 } from '../object/condition.ts'
import { isJsonObject } from '../object/json.ts'
import type { JsonObject, ManagedFieldsEntry } from '../object/object.ts'
import { difference, equalSets, type FieldSet, isFieldsV1, memberNode, union } from './field-set.ts'

/** More updaters than this and the oldest are put together as "ancient-changes", as in Kubernetes. */
const maxUpdateManagers = 10

export type EntryKey = Pick<ManagedFieldsEntry, 'manager' | 'operation' | 'apiVersion'> & { subresource?: string }

/** True if `entry` is the one that `key` names. An applier has one entry, whatever the version it last applied with. */
export function isEntryOf(entry: ManagedFieldsEntry, key: EntryKey): boolean {
  return (
    entry.manager === key.manager &&
    entry.operation === key.operation &&
    (entry.subresource || undefined) === (key.subresource || undefined) &&
    (key.operation === 'Apply' || entry.apiVersion === key.apiVersion)
  )
}

export function entryFields(entry: ManagedFieldsEntry): FieldSet {
  for (const _ in entry.fieldsV1) return entry.fieldsV1
  return undefined
}

/** The entries of an object as a list that can be worked on; undefined when a client wrote ones that make no sense. */
export function readEntries(value: unknown): ManagedFieldsEntry[] | undefined {
  if (!Array.isArray(value)) return []
  const isSound = value.every(
    entry =>
      isJsonObject(entry) &&
      (entry.operation === 'Apply' || entry.operation === 'Update') &&
      typeof (entry.manager ?? '') === 'string' &&
      typeof entry.apiVersion === 'string' &&
      entry.apiVersion !== '' &&
      entry.fieldsType === 'FieldsV1' &&
      isFieldsV1(entry.fieldsV1 ?? {}),
  )
  return isSound ? (value as ManagedFieldsEntry[]) : undefined
}

/** True if a client may set an object's managedFields to `value`: entries that make sense, or none, which stops tracking. */
export function isManagedFields(value: unknown): boolean {
  return isReset(value) || readEntries(value) !== undefined
}

export function isReset(sent: unknown): boolean {
  if (!Array.isArray(sent)) return false
  return sent.length === 0 || (sent.length === 1 && isJsonObject(sent[0]) && Object.keys(sent[0]).length === 0)
}

/** Entries without `fields`, `except` one; those that owned none of them stay the same objects, those left with nothing go. */
export function disown(entries: ManagedFieldsEntry[], fields: FieldSet, except?: EntryKey): ManagedFieldsEntry[] {
  if (fields === undefined) return entries
  let result: ManagedFieldsEntry[] | undefined
  for (const [index, entry] of entries.entries()) {
    const owned = entryFields(entry)
    const rest = except && isEntryOf(entry, except) ? owned : difference(owned, fields)
    if (rest === owned) {
      result?.push(entry)
      continue
    }
    result ??= entries.slice(0, index)
    if (rest !== undefined) result.push({ ...entry, fieldsV1: rest })
  }
  return result ?? entries
}

/** An entry as it is stored, its keys in Kubernetes' order. */
export function newEntry(key: EntryKey, fields: JsonObject, time: string | undefined): ManagedFieldsEntry {
  const { manager, operation, apiVersion, subresource } = key
  const rest = subresource ? { subresource } : {}
  return { manager, operation, apiVersion, ...(time !== undefined && { time }), fieldsType: 'FieldsV1', fieldsV1: fields, ...rest }
}

/** Entries with `key`'s owning `fields` more, since `nowMs`. */
export function own(entries: ManagedFieldsEntry[], key: EntryKey, fields: FieldSet, nowMs: number): ManagedFieldsEntry[] {
  if (fields === undefined) return entries
  const index = entries.findIndex(entry => isEntryOf(entry, key))
  if (index < 0) return [...entries, newEntry(key, fields, rfc3339(nowMs))]
  const old = entries[index]!
  const owned = union(entryFields(old), fields)!
  const time = rfc3339(nowMs)
  if (old.time === time && equalSets(owned, entryFields(old))) return entries
  return entries.with(index, newEntry(key, owned, time))
}

/** Appliers before updaters, then by time and name: the order Kubernetes stores. */
export function sortEntries(entries: ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  for (let index = 1; index < entries.length; index++) {
    if (compareEntries(entries[index - 1]!, entries[index]!) > 0) return entries.toSorted(compareEntries)
  }
  return entries
}

function compareEntries(a: ManagedFieldsEntry, b: ManagedFieldsEntry): number {
  return (
    compareTexts(a.operation, b.operation) ||
    compareTexts(a.time ?? '', b.time ?? '') ||
    compareTexts(a.manager ?? '', b.manager ?? '') ||
    compareTexts(a.apiVersion, b.apiVersion) ||
    compareTexts(a.subresource ?? '', b.subresource ?? '')
  )
}

const compareTexts = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** Keeps the number of updaters bounded (invariant 10): beyond the limit the oldest of one version become one. */
export function capUpdaters(entries: ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  let excess = 0
  for (const entry of entries) if (entry.operation === 'Update') excess++
  excess -= maxUpdateManagers
  if (excess <= 0) return entries
  const oldest = entries.filter(entry => entry.operation === 'Update').sort(compareEntries)
  const gone = new Set<ManagedFieldsEntry>()
  const buckets = new Map<string, ManagedFieldsEntry>()
  for (const entry of oldest) {
    if (excess <= 0) break
    const bucket = buckets.get(entry.apiVersion)
    if (bucket !== undefined) excess--
    const fields = union(bucket && entryFields(bucket), entryFields(entry)) ?? memberNode
    const key: EntryKey = { manager: 'ancient-changes', operation: 'Update', apiVersion: entry.apiVersion }
    buckets.set(entry.apiVersion, bucket === undefined ? entry : newEntry(key, fields, entry.time))
    gone.add(entry)
  }
  return [...entries.filter(entry => !gone.has(entry)), ...buckets.values()]
}
