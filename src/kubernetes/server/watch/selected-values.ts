import type { SelectedValues, VersionValues } from '../../util/index.ts'
import type { StoredEntry, StoredEvent } from '../storage/index.ts'

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
