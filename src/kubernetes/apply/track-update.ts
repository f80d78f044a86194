import type { ManagedFieldsEntry } from '../object/object.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { compareObjects } from './compare-objects.ts'
import { rootSchema } from './field-schema.ts'
import { capUpdaters, disown, isReset, own, readEntries, sortEntries } from './managed-fields.ts'

/** Any object with or without metadata: what stands in a store or comes in a request. */
export type AnyObject = { [field: string]: unknown }

export type TrackUpdateInput = {
  /** The stored object; undefined on create. */
  before: AnyObject | undefined
  /** The object as it will be stored, defaults filled in. */
  after: AnyObject
  /** On create: what an object has that says nothing, such as an empty `spec`; nobody owns that. Default: nothing. */
  blank?: AnyObject
  manager: string
  schema: StructuralSchema | undefined
  apiVersion: string
  subresource?: string
  nowMs: number
}

/**
 * The managedFields of an object after a create, update or patch: what changed is `manager`'s, with operation Update,
 * and nobody else's; what is gone is nobody's. As in Kubernetes, an update whose managedFields are an empty list stops
 * tracking, one that carries sound entries of its own is believed, and an untracked object is tracked from its first
 * apply on. When nothing changed the very list of `before` comes back.
 */
export function trackUpdate(input: TrackUpdateInput): ManagedFieldsEntry[] {
  const { before, after, manager, apiVersion, subresource, nowMs } = input
  const stored = managedFieldsOf(before)
  const sent = subresource ? undefined : managedFieldsOf(after)
  if (before !== undefined && isReset(sent)) return []
  const sentEntries = sent === stored || isReset(sent) ? undefined : readEntries(sent)
  const start = sentEntries?.length ? sentEntries : (readEntries(stored) ?? [])
  if (start.length === 0 && before !== undefined) return start

  const { changed, removed } = compareObjects(rootSchema(input.schema), before ?? input.blank ?? {}, after)
  if (changed === undefined && removed === undefined) return start
  const key = { manager, operation: 'Update', apiVersion, subresource } as const
  const others = disown(disown(start, removed), changed, key)
  return sortEntries(capUpdaters(own(others, key, changed, nowMs)))
}

export function managedFieldsOf(object: AnyObject | undefined): unknown {
  return (object?.metadata as AnyObject | undefined)?.managedFields
}
