import {
  defaultPageSize,
  type Filter,
  FilterError,
  filterFields,
  matchesFilter,
  maxPageSize,
  parseFilter,
  type StackRow,
  type TableFacts,
  type TableKind,
  type TableQuery,
} from '../protocol/index.ts'
import { withAttention } from './attention.ts'

type Row = Readonly<Record<string, unknown>> & { readonly key: string }

/** The visible part of a table. */
export type TableView = { readonly facts: TableFacts; readonly rows: readonly Row[] }

/** By which field a table is ordered if its query names none; a `-` reverses the order. */
const defaultSort: Readonly<Record<TableKind, string>> = {
  stacks: 'key',
  runs: '-createdMs',
  queue: 'queuePosition',
  workers: 'key',
  pools: 'key',
  tenants: 'key',
  controllers: 'key',
  partitions: 'number',
}

/** Fields whose values are counted. */
const countedFields: Readonly<Record<TableKind, readonly string[]>> = {
  stacks: ['state', 'engine', 'tenant', 'namespace', 'pool'],
  runs: ['phase', 'type', 'engine', 'pool', 'namespace'],
  queue: ['pool', 'reason', 'tenant', 'namespace'],
  workers: ['phase', 'pool', 'host', 'partition'],
  pools: ['mode', 'lifecycle'],
  tenants: ['partition'],
  controllers: [],
  partitions: [],
}

/** Of one field: those with the most rows. */
const maxCountedValues = 50

/**
 * Filters, counts, sorts and cuts the rows that a user may see. Rows with the same value are in the order of their keys, and rows without one are
 * last in both directions. Costs about 1 ms for 10,000 rows that do not match, and 10 ms for as many that do and are sorted by text.
 */
export function tableView(kind: TableKind, rows: Iterable<Row>, query: TableQuery, nowMs: number): TableView {
  const { offset = 0 } = query
  const limit = Math.min(query.limit ?? defaultPageSize, maxPageSize)
  let filter: Filter
  try {
    filter = parseFilter(query.filter ?? '', filterFields[kind])
  } catch (error) {
    if (!(error instanceof FilterError)) throw error
    return { facts: { total: 0, all: 0, offset: 0, counts: {}, invalid: error.message }, rows: [] }
  }
  const counted = countedFields[kind]
  const counts: Record<string, Map<string, number>> = Object.fromEntries(counted.map(field => [field, new Map()]))
  const filtered = new Set(filter.terms.map(({ field }) => field))
  const matching: Row[] = []
  let all = 0
  const filterable = kind === 'stacks' ? (withAttention(rows as Iterable<StackRow>, filter, nowMs) as Iterable<Row>) : rows
  for (const row of filterable) {
    all++
    const matches = matchesFilter(row, filter)
    if (matches) matching.push(row)
    for (const field of counted) {
      if (!matches && !(filtered.has(field) && matchesFilter(row, filter, field))) continue
      const value = row[field]
      const values = counts[field] as Map<string, number>
      if (value !== undefined) values.set(String(value), (values.get(String(value)) ?? 0) + 1)
    }
  }
  matching.sort(compareBy(query.sort ?? defaultSort[kind]))
  // A table that became shorter shows its last page.
  const start = offset < matching.length ? offset : Math.max(0, matching.length - limit)
  return {
    facts: {
      total: matching.length,
      all,
      offset: start,
      counts: Object.fromEntries(counted.map(field => [field, mostFrequent(counts[field])])),
    },
    rows: matching.slice(start, start + limit),
  }
}

function mostFrequent(values: ReadonlyMap<string, number> | undefined): Record<string, number> {
  const sorted = [...(values ?? [])].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
  return Object.fromEntries(sorted.slice(0, maxCountedValues))
}

function compareBy(sort: string): (a: Row, b: Row) => number {
  const direction = sort.startsWith('-') ? -1 : 1
  const field = sort.replace(/^-/, '')
  const byKey = (a: Row, b: Row) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)
  if (field === 'key') return (a, b) => direction * byKey(a, b)
  return (a, b) => {
    const [x, y] = [sortable(a[field]), sortable(b[field])]
    if (x === y) return byKey(a, b)
    if (x === undefined) return 1
    if (y === undefined) return -1
    return direction * (x < y ? -1 : 1)
  }
}

function sortable(value: unknown): string | number | undefined {
  if (typeof value === 'number' || typeof value === 'string') return value
  if (typeof value === 'boolean') return value ? 1 : 0
  return Array.isArray(value) ? value.length : undefined
}
