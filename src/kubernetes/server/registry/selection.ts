import {
  badRequest,
  formatShardSelector,
  type KubeObject,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
  parseShardSelector,
  shardTest,
  shardTestOfHash,
} from '../../object/index.ts'
import { type StoredEntry, type Table, uidHashOf } from '../storage/index.ts'
import type { Kind } from './kind.ts'

/** The objects of a table that a list, watch or deletecollection selects. */
export type EntrySelection = {
  /** Empty: all namespaces. */
  readonly namespace: string
  /** The name that a selector requires, if any: a lookup replaces the scan. */
  readonly name: string | undefined
  /** True if only the namespace restricts the selection. */
  readonly isWhole: boolean
  /** The selected part of the collection, as the response reports it; `isOnly` if no other selector restricts it. */
  readonly shard?: { readonly text: string; readonly isOnly: boolean }
  matches(entry: StoredEntry): boolean
}

/** @throws {StatusError} BadRequest for an invalid selector or a field that is not selectable. */
export function select(
  kind: Kind,
  table: Table,
  namespace: string,
  labelSelector: string | undefined,
  fieldSelector: string | undefined,
  shardSelector?: string,
): EntrySelection {
  const tests: ((entry: StoredEntry) => boolean)[] = []
  let name: string | undefined
  if (namespace) tests.push(entry => entry.namespace === namespace)
  if (labelSelector) {
    const selector = parseLabelSelector(labelSelector)
    if (selector.requirements.length > 0) tests.push(entry => matchesLabels(selector, entry.labels))
  }
  if (fieldSelector) {
    for (const { field, operator, value } of parseFieldSelector(fieldSelector).requirements) {
      const read = fieldOf(kind, table, field)
      if (field === 'metadata.name' && operator === '=') name = value
      tests.push(operator === '=' ? entry => read(entry) === value : entry => read(entry) !== value)
    }
  }
  const isWhole = tests.length === (namespace ? 1 : 0) && !shardSelector
  let shard: EntrySelection['shard']
  if (shardSelector) {
    const selector = parseShardSelector(shardSelector)
    shard = { text: formatShardSelector(selector), isOnly: tests.length === (namespace ? 1 : 0) }
    if (selector.field === 'uid') {
      const isInside = shardTestOfHash(selector)
      tests.push(entry => isInside(uidHashOf(entry), entry.uid))
    } else {
      const isInside = shardTest(selector)
      tests.push(entry => isInside(entry.namespace))
    }
  }
  const [only] = tests
  const matches = tests.length === 0 ? () => true : tests.length === 1 ? only! : (entry: StoredEntry) => tests.every(test => test(entry))
  return { namespace, name, isWhole, shard, matches }
}

/** The selected objects in key order. */
export function selectFrom(table: Table, selection: EntrySelection): readonly StoredEntry[] {
  const { namespace, name } = selection
  if (name !== undefined && (namespace || !name.includes('/'))) {
    const entry = namespace ? table.get(`${namespace}/${name}`) : undefined
    if (namespace) return entry && selection.matches(entry) ? [entry] : []
  }
  const all = namespace ? table.inNamespace(namespace) : table.snapshot()
  return selection.isWhole ? all : all.filter(selection.matches)
}

/** The objects that were selected at `revision`, in key order; undefined when that is too long ago. */
export function selectAt(table: Table, selection: EntrySelection, revision: number): readonly StoredEntry[] | undefined {
  if (revision >= table.lastRevision && revision >= table.floor) return selectFrom(table, selection)
  return table.snapshotAt(revision)?.filter(selection.matches)
}

/** The values of the selectable fields of an object, besides its name and namespace. */
export function selectedFieldsOf(kind: Kind, table: Table): (entry: StoredEntry) => Record<string, string> {
  const readers = kind.selectableFields.map(({ field }) => [field, fieldOf(kind, table, field)] as const)
  return entry => Object.fromEntries(readers.map(([field, read]) => [field, read(entry)]))
}

function fieldOf(kind: Kind, table: Table, field: string): (entry: StoredEntry) => string {
  if (field === 'metadata.name') return entry => entry.name
  if (field === 'metadata.namespace' && kind.namespaced) return entry => entry.namespace
  const selectable = kind.selectableFields.find(candidate => candidate.field === field)
  if (!selectable) {
    const names = [
      'metadata.name',
      ...(kind.namespaced ? ['metadata.namespace'] : []),
      ...kind.selectableFields.map(selectableField => selectableField.field),
    ]
    throw badRequest(
      kind.selectableFields.length > 0 || kind.isCustom
        ? `field label not supported: ${field}`
        : `${JSON.stringify(field)} is not a known field selector: only ${names.map(selectableField => JSON.stringify(selectableField)).join(', ')}`,
    )
  }
  return entry => {
    // Looked up each time: a definition may make other fields selectable while a watch is open.
    const index = table.fieldNames.indexOf(field)
    return index >= 0 && entry.fields ? entry.fields[index]! : selectable.read(JSON.parse(entry.text) as KubeObject)
  }
}
