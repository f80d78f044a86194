import { rfc3339 } from '../object/condition.ts'
import { isJsonObject } from '../object/json.ts'
import type { JsonObject, ManagedFieldsEntry } from '../object/object.ts'
import { difference, equalSets, type FieldSet, isFieldsV1, memberNode, union } from './field-set.ts'

/** Above this number of updaters the oldest are merged into "ancient-changes", as in Kubernetes. */
const maxUpdateManagers = 10

export type EntryKey = Pick<ManagedFieldsEntry, 'manager' | 'operation' | 'apiVersion'> & { subresource?: string }

/** True if `key` identifies `entry`. An applier has a single entry, whatever version it last applied. */
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

/** The entries of an object; undefined when a client sent invalid ones. */
export function readEntries(value: unknown): ManagedFieldsEntry[] | undefined {
  if (!Array.isArray(value)) return []
  const areValid = value.every(
    entry =>
      isJsonObject(entry) &&
      (entry.operation === 'Apply' || entry.operation === 'Update') &&
      typeof (entry.manager ?? '') === 'string' &&
      typeof entry.apiVersion === 'string' &&
      entry.apiVersion !== '' &&
      entry.fieldsType === 'FieldsV1' &&
      isFieldsV1(entry.fieldsV1 ?? {}),
  )
  return areValid ? (value as ManagedFieldsEntry[]) : undefined
}

/** True if a client may set managedFields to `value`: valid entries, or an empty list, which stops tracking. */
export function isManagedFields(value: unknown): boolean {
  return isReset(value) || readEntries(value) !== undefined
}

export function isReset(sent: unknown): boolean {
  if (!Array.isArray(sent)) return false
  return sent.length === 0 || (sent.length === 1 && isJsonObject(sent[0]) && Object.keys(sent[0]).length === 0)
}

/** Removes `fields` from all entries `except` one. Entries without any of them remain the same objects; empty entries are dropped. */
export function removeOwnership(entries: ManagedFieldsEntry[], fields: FieldSet, except?: EntryKey): ManagedFieldsEntry[] {
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

/** An entry with its keys in Kubernetes' order. */
export function newEntry(key: EntryKey, fields: JsonObject, time: string | undefined): ManagedFieldsEntry {
  const { manager, operation, apiVersion, subresource } = key
  const rest = subresource ? { subresource } : {}
  return { manager, operation, apiVersion, ...(time !== undefined && { time }), fieldsType: 'FieldsV1', fieldsV1: fields, ...rest }
}

/** Adds `fields` to the entry of `key`, with the time `nowMs`. */
export function addFieldOwnership(entries: ManagedFieldsEntry[], key: EntryKey, fields: FieldSet, nowMs: number): ManagedFieldsEntry[] {
  if (fields === undefined) return entries
  const index = entries.findIndex(entry => isEntryOf(entry, key))
  if (index < 0) return [...entries, newEntry(key, fields, rfc3339(nowMs))]
  const old = entries[index]!
  const owned = union(entryFields(old), fields)!
  const time = rfc3339(nowMs)
  if (old.time === time && equalSets(owned, entryFields(old))) return entries
  return entries.with(index, newEntry(key, owned, time))
}

/**
 * The entries after the manager of `key` wrote a new value to the field at `path`, if it owns that field alone; otherwise undefined,
 * because ownership has to be computed.
 */
export function touchOwnership(
  entries: ManagedFieldsEntry[],
  key: EntryKey,
  path: readonly string[],
  nowMs: number,
): ManagedFieldsEntry[] | undefined {
  let own = -1
  for (const [index, entry] of entries.entries()) {
    let node: FieldSet = entry.fieldsV1 as FieldSet
    for (const element of path) node = node?.[element] as FieldSet
    if (node === undefined) continue
    if (own >= 0 || !isEntryOf(entry, key)) return undefined
    own = index
  }
  if (own < 0) return undefined
  const entry = entries[own]!
  const time = rfc3339(nowMs)
  return entry.time === time ? entries : sortEntries(entries.with(own, { ...entry, time }))
}

/** Sorts as Kubernetes does: appliers before updaters, then by time and name. */
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

/** Limits the number of updaters (invariant 10): merges the oldest ones of each version. */
export function mergeOldestUpdaters(entries: ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  let excess = 0
  for (const entry of entries) if (entry.operation === 'Update') excess++
  excess -= maxUpdateManagers
  if (excess <= 0) return entries
  const oldest = entries.filter(entry => entry.operation === 'Update').sort(compareEntries)
  const merged = new Set<ManagedFieldsEntry>()
  const buckets = new Map<string, ManagedFieldsEntry>()
  for (const entry of oldest) {
    if (excess <= 0) break
    const bucket = buckets.get(entry.apiVersion)
    if (bucket !== undefined) excess--
    const fields = union(bucket && entryFields(bucket), entryFields(entry)) ?? memberNode
    const key: EntryKey = { manager: 'ancient-changes', operation: 'Update', apiVersion: entry.apiVersion }
    buckets.set(entry.apiVersion, bucket === undefined ? entry : newEntry(key, fields, entry.time))
    merged.add(entry)
  }
  return [...entries.filter(entry => !merged.has(entry)), ...buckets.values()]
}
