import type { ManagedFieldsEntry } from '../object/object.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { compareObjects } from './compare-objects.ts'
import { rootSchema } from './field-schema.ts'
import { addFieldOwnership, isReset, mergeOldestUpdaters, readEntries, removeOwnership, sortEntries } from './managed-fields.ts'

/** Any object, with or without metadata, stored or sent. */
export type AnyObject = { [field: string]: unknown }

export type TrackUpdateInput = {
  /** The stored object; undefined on create. */
  before: AnyObject | undefined
  /** The object as it will be stored, including defaults. */
  after: AnyObject
  /** On create: the zero value of the kind, such as an empty `spec`, which is not owned. Default: none. */
  zeroValue?: AnyObject
  manager: string
  schema: StructuralSchema | undefined
  apiVersion: string
  subresource?: string
  nowMs: number
}

/**
 * The managedFields of an object after a create, update or patch: changed fields belong to `manager` with operation Update
 * and to no other manager; removed fields have no owner. As in Kubernetes, an update with an empty list stops tracking,
 * one with valid entries of its own replaces them, and an untracked object is tracked from its first apply. Returns the
 * list of `before` if nothing changed.
 */
export function trackUpdate(input: TrackUpdateInput): ManagedFieldsEntry[] {
  const { before, after, manager, apiVersion, subresource, nowMs } = input
  const stored = managedFieldsOf(before)
  const sent = subresource ? undefined : managedFieldsOf(after)
  if (before !== undefined && isReset(sent)) return []
  const sentEntries = sent === stored || isReset(sent) ? undefined : readEntries(sent)
  // Stored entries were checked when they were sent, or are ours.
  const start = sentEntries?.length ? sentEntries : ((stored ?? []) as ManagedFieldsEntry[])
  if (start.length === 0 && before !== undefined) return start

  const { changed, removed } = compareObjects(rootSchema(input.schema), before ?? input.zeroValue ?? {}, after)
  if (changed === undefined && removed === undefined) return start
  const key = { manager, operation: 'Update', apiVersion, subresource } as const
  const others = removeOwnership(removeOwnership(start, removed), changed, key)
  return sortEntries(mergeOldestUpdaters(addFieldOwnership(others, key, changed, nowMs)))
}

export function managedFieldsOf(object: AnyObject | undefined): unknown {
  return (object?.metadata as AnyObject | undefined)?.managedFields
}
