import type { Client } from '../../kubernetes/client/index.ts'
import { resourcePath } from '../../kubernetes/client/index.ts'
import type { KubeObject, Resource } from '../../kubernetes/object/index.ts'
import { renderTable } from './table.ts'

/** `stack.oarlock.dev/network`, as kubectl names an object. */
export function objectName({ kind, group }: Resource<unknown>, name: string): string {
  return `${kind.toLowerCase()}${group ? `.${group}` : ''}/${name}`
}

/** A value as JSON or YAML, without managedFields. */
export async function serialize(value: unknown, format: 'json' | 'yaml'): Promise<string> {
  const clean = withoutManagedFields(value)
  if (format === 'json') return JSON.stringify(clean, null, 2)
  const { stringify } = await import('yaml')
  // kubectl reads YAML 1.1, where an unquoted Off, as in the enum of a CRD, is false.
  return stringify(clean, { lineWidth: 0, aliasDuplicateObjects: false, compat: 'yaml-1.1' }).trimEnd()
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

/** Requests a table from the server, which knows the columns of every kind. */
export async function fetchTable(
  client: Client,
  resource: Resource,
  { namespace, name, labelSelector }: { namespace?: string; name?: string; labelSelector?: string },
): Promise<ServerTable> {
  const response = await client.request({
    method: 'GET',
    path: resourcePath(resource, namespace, name),
    query: { labelSelector },
    headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' },
  })
  return (await response.json()) as ServerTable
}

/** The lines of a server's table. Columns of priority above 0 are shown only if `wide`. */
export function tableLines(
  table: ServerTable,
  { wide, withNamespace, prefix }: { wide: boolean; withNamespace: boolean; prefix?: string },
): string[] {
  const columns = table.columnDefinitions.map((definition, index) => ({ ...definition, index })).filter(({ priority }) => wide || !priority)
  const headers = [...(withNamespace ? ['NAMESPACE'] : []), ...columns.map(({ name }) => name.toUpperCase())]
  const rows = table.rows.map(({ cells, object }) => [
    ...(withNamespace ? [object?.metadata?.namespace ?? ''] : []),
    ...columns.map(({ index }, column) => `${column === 0 ? (prefix ?? '') : ''}${cellText(cells[index])}`),
  ])
  return renderTable(headers, rows)
}

const cellText = (cell: unknown) =>
  cell === null || cell === undefined || cell === '' ? '<none>' : typeof cell === 'object' ? JSON.stringify(cell) : String(cell)
