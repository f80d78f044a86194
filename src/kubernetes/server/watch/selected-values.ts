import type { StoredEntry, StoredEvent } from '../storage/index.ts'

/** What selectors select one version of an object by, besides its name, namespace and UID. */
export type VersionValues = {
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly fields: Readonly<Record<string, string>>
}

/**
 * What selectors select by, of an event: a gateway decides with it for each of its clients whether an object enters or leaves a selection, and does not
 * decode the object.
 */
export type SelectedValues = {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** Undefined if the object is deleted. */
  readonly after?: VersionValues
  /** Undefined if the object is new; true: as after. */
  readonly before?: VersionValues | true
}

export function selectedValuesOf(
  { type, entry, before }: StoredEvent,
  readFields: (entry: StoredEntry) => Record<string, string>,
): SelectedValues {
  const { namespace, name, uid } = entry
  const object = { namespace, name, uid }
  const valuesOf = (version: StoredEntry): VersionValues => ({ labels: version.labels, fields: readFields(version) })
  if (type === 'DELETED') return { ...object, before: valuesOf(before ?? entry) }
  const after = valuesOf(entry)
  if (!before) return { ...object, after }
  const earlier = valuesOf(before)
  return { ...object, after, before: JSON.stringify(earlier) === JSON.stringify(after) ? true : earlier }
}

/** Whether the object may leave a selection, and enter another. */
export const hasMoved = ({ after, before }: SelectedValues): boolean => after !== undefined && before !== undefined && before !== true
