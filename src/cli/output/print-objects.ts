import type { Client } from '../../kubernetes/client/index.ts'
import { resourcePath } from '../../kubernetes/client/index.ts'
import type { KubeObject, Resource } from '../../kubernetes/object/index.ts'
import { stringifyYaml } from '../../kubernetes/util/index.ts'
import { renderTableWithin } from './table.ts'

/** `stack.oarlock.dev/network`, as kubectl names an object. */
export function objectName({ kind, group }: Resource<unknown>, name: string): string {
  return `${kind.toLowerCase()}${group ? `.${group}` : ''}/${name}`
}

/** A value as JSON or YAML, without managedFields and the last line end. */
export async function serialize(value: unknown, format: 'json' | 'yaml'): Promise<string> {
  const clean = withoutManagedFields(value)
  if (format === 'json') return JSON.stringify(clean, null, 2)
  // kubectl reads YAML 1.1, where an unquoted Off, as in the enum of a CRD, is false.
  return stringifyYaml(clean, { compat: 'yaml-1.1' }).replace(/\n$/, '')
}

function withoutManagedFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutManagedFields)
  if (typeof value !== 'object' || value === null) return value
  const object = value as Record<string, unknown>
  if (Array.isArray(object.items)) return { ...object, items: object.items.map(withoutManagedFields) }
  if (typeof object.metadata !== 'object') return value
  const { managedFields: _, ...metadata } = object.metadata as Record<string, unknown>
  return { ...object, metadata }
}

export type ServerTable = {
  kind: 'Table'
  columnDefinitions: { name: string; priority?: number }[]
  rows: { cells: unknown[]; object?: Partial<KubeObject> }[]
  metadata?: { resourceVersion?: string; continue?: string }
}

/** Which objects, and how much of each its row has besides the cells. Default: its metadata. */
export type TableQuery = {
  namespace?: string | undefined
  name?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  includeObject?: 'Object' | undefined
}

export const tableAccept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

/** Requests a table from the server, which knows the columns of every kind. */
export async function fetchTable(
  client: Client,
  resource: Resource,
  { namespace, name, labelSelector, fieldSelector, includeObject }: TableQuery,
): Promise<ServerTable> {
  const response = await client.request({
    method: 'GET',
    path: resourcePath(resource, namespace, name),
    query: { labelSelector, fieldSelector, includeObject },
    headers: { accept: tableAccept },
  })
  return (await response.json()) as ServerTable
}

export type TableOptions = {
  wide: boolean
  withNamespace: boolean
  withLabels: boolean
  withHeaders: boolean
  /** Before each name, such as `stack.oarlock.dev/`. */
  prefix: string
}

/** Prints tables of one kind as if they were one: later ones get no headers, and columns are at least as wide as before. */
export class TablePrinter {
  readonly #options: TableOptions
  #columns: ServerTable['columnDefinitions'] = []
  #widths: readonly number[] = []
  #hasHeaders: boolean

  constructor(options: TableOptions) {
    this.#options = options
    this.#hasHeaders = !options.withHeaders
  }

  /** The lines of a table. Columns of priority above 0 are shown only if `wide`. */
  lines({ columnDefinitions, rows }: ServerTable): string[] {
    const { wide, withNamespace, withLabels, withHeaders, prefix } = this.#options
    // Only the first event of a watch has them.
    if (columnDefinitions?.length) this.#columns = columnDefinitions
    const columns = this.#columns.map((definition, index) => ({ ...definition, index })).filter(({ priority }) => wide || !priority)
    const headers = [
      ...(withNamespace ? ['NAMESPACE'] : []),
      ...columns.map(({ name }) => name.toUpperCase()),
      ...(withLabels ? ['LABELS'] : []),
    ]
    const cells = rows.map(row => [
      ...(withNamespace ? [row.object?.metadata?.namespace ?? ''] : []),
      ...columns.map(({ index }, column) => `${column === 0 ? prefix : ''}${cellText(row.cells[index])}`),
      ...(withLabels ? [labelText(row.object?.metadata?.labels)] : []),
    ])
    const { lines, widths } = renderTableWithin(this.#widths, withHeaders ? headers : headers.map(() => ''), cells)
    this.#widths = widths
    if (!this.#hasHeaders && rows.length > 0) {
      this.#hasHeaders = true
      return lines
    }
    return lines.slice(1)
  }
}

const labelText = (labels: Readonly<Record<string, string>> = {}) =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',') || '<none>'

const cellText = (cell: unknown) =>
  cell === null || cell === undefined || cell === '' ? '<none>' : typeof cell === 'object' ? JSON.stringify(cell) : String(cell)
