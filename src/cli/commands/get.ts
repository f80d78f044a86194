import { stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { resourcePath } from '../../kubernetes/client/index.ts'
import { type Resource, StatusError } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { discoverTypes, findTypes } from '../find-types.ts'
import { escapeControls } from '../output/escape-controls.ts'
import type { GetFormat, ObjectFormat } from '../output/get-format.ts'
import { JsonPathError, renderJsonPath } from '../output/json-path.ts'
import { fetchTable, objectName, type ServerTable, serialize, TablePrinter, type TableQuery } from '../output/print-objects.ts'
import { sortByPath } from '../output/sort-objects.ts'
import { stackNotFound } from '../targets.ts'
import { note, print } from '../terminal.ts'
import { watchTables } from '../watch-tables.ts'

export type GetOptions = AccessOptions & {
  output?: GetFormat
  selector?: string
  fieldSelector?: string
  sortBy?: string
  headers: boolean
  showLabels?: boolean
  watch?: boolean
  watchOnly?: boolean
}

/** `oarlock get TYPE [NAME…]` or `TYPE/NAME`: lists objects of any kind that the server has; with -w until it is interrupted. */
export async function get(typed: string, names: string[], options: GetOptions): Promise<void> {
  const slash = typed.indexOf('/')
  if (slash > 0) return await get(typed.slice(0, slash), [typed.slice(slash + 1), ...names], options)
  if (names.length > 0 && options.allNamespaces)
    throw usageError('a name cannot be combined with --all-namespaces', 'omit -A, and choose the namespace with -n')
  if (names.length > 0 && (options.selector ?? options.fieldSelector) !== undefined)
    throw usageError('a name cannot be combined with a selector', 'omit one of both')
  await withClient(options, async client => {
    const types = findTypes(typed, await discoverTypes(client))
    try {
      if (options.watch || options.watchOnly) return await watchType(client, types, names, options)
      const { output } = options
      if (output && output.kind !== 'table' && output.kind !== 'name') return await printObjects(client, types, names, options, output)
      await printTables(client, types, names, options)
    } catch (error) {
      if (error instanceof JsonPathError) throw new CliError(error.message, { exitCode: exitCodes.usage, cause: error })
      const missing = error instanceof StatusError && error.code === 404 ? error.details?.name : undefined
      const isStack = types.length === 1 && types[0]!.kind === stackResource.kind && types[0]!.group === stackResource.group
      throw isStack && missing !== undefined && names.includes(missing)
        ? await stackNotFound(client, missing, namespaceOf(client, options))
        : error
    }
  })
}

function queryOf(client: Client, resource: Resource, name: string | undefined, options: GetOptions): TableQuery {
  const namespace = resource.scope === 'Cluster' || options.allNamespaces ? undefined : namespaceOf(client, options)
  return { namespace, name, labelSelector: options.selector, fieldSelector: options.fieldSelector }
}

const eachName = (names: readonly string[]): readonly (string | undefined)[] => (names.length > 0 ? names : [undefined])

async function printTables(client: Client, types: readonly Resource[], names: readonly string[], options: GetOptions): Promise<void> {
  let printed = 0
  for (const resource of types) {
    const printer = printerOf(resource, types.length > 1, options)
    const tables: ServerTable[] = []
    for (const name of eachName(names)) {
      const includeObject = options.sortBy === undefined ? undefined : 'Object'
      tables.push(await fetchTable(client, resource, { ...queryOf(client, resource, name, options), includeObject }))
    }
    const [first] = tables
    const rows = tables.flatMap(table => table.rows)
    if (!first || rows.length === 0) continue
    const sorted = options.sortBy === undefined ? rows : sortByPath(rows, options.sortBy, ({ object }) => object)
    if (options.output?.kind === 'name') for (const { object } of sorted) print(objectName(resource, object?.metadata?.name ?? ''))
    else {
      if (printed > 0) print('')
      for (const line of printer.lines({ ...first, rows: sorted })) print(line)
    }
    printed += rows.length
  }
  if (printed > 0) return
  const isEverywhere = options.allNamespaces || types.every(({ scope }) => scope === 'Cluster')
  note(isEverywhere ? 'no objects found' : `no objects found in namespace ${namespaceOf(client, options)}; use -A for all namespaces`)
}

const printerOf = (resource: Resource, isOneOfMany: boolean, { output, allNamespaces, showLabels, headers }: GetOptions) =>
  new TablePrinter({
    wide: output?.kind === 'table' && output.wide,
    withNamespace: resource.scope === 'Namespaced' && allNamespaces === true,
    withLabels: showLabels === true,
    withHeaders: headers,
    prefix: isOneOfMany ? objectName(resource, '') : '',
  })

type List = { items?: unknown[] }

async function printObjects(
  client: Client,
  types: readonly Resource[],
  names: readonly string[],
  options: GetOptions,
  format: ObjectFormat,
): Promise<void> {
  const collected: unknown[] = []
  for (const resource of types)
    for (const name of eachName(names)) {
      const { namespace, labelSelector, fieldSelector } = queryOf(client, resource, name, options)
      const response = await client.request({
        method: 'GET',
        path: resourcePath(resource, namespace, name),
        query: { labelSelector, fieldSelector },
      })
      collected.push(await response.json())
    }
  const found = asOne(collected) as List
  const { sortBy } = options
  await printValue(sortBy !== undefined && found.items ? { ...found, items: sortByPath(found.items, sortBy, item => item) } : found, format)
}

/** Like kubectl, a template prints exactly what it has: no line break is added. */
async function printValue(value: unknown, format: ObjectFormat): Promise<void> {
  if (format.kind === 'jsonpath') process.stdout.write(escapeControls(renderJsonPath(format.template, value)))
  else print(await serialize(value, format.kind))
}

/** One response unchanged; several as one List, as kubectl prints them. */
function asOne(responses: unknown[]): unknown {
  if (responses.length === 1) return responses[0]
  const items = responses.flatMap(response => (response as List).items ?? [response])
  return { apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '' }, items }
}

async function watchType(client: Client, types: readonly Resource[], names: readonly string[], options: GetOptions): Promise<void> {
  const [resource] = types
  if (!resource || types.length > 1)
    throw usageError('only one type can be watched', `name one of ${types.map(({ plural }) => plural).join(', ')}`)
  if (names.length > 1) throw usageError('only one object can be watched by name', 'use a selector instead')
  if (options.sortBy !== undefined) throw usageError('--watch cannot be combined with --sort-by', 'changes are printed as they happen')
  const { output } = options
  const isTable = !output || output.kind === 'table'
  const query: TableQuery = { ...queryOf(client, resource, names[0], options), ...(!isTable && { includeObject: 'Object' }) }
  const printer = printerOf(resource, false, options)
  // Rows are printed one after another: the serialization is asynchronous.
  let pending = Promise.resolve()
  const show = async (table: ServerTable) => {
    if (isTable) for (const line of printer.lines(table)) print(line)
    else if (output.kind === 'name') for (const { object } of table.rows) print(objectName(resource, object?.metadata?.name ?? ''))
    else for (const { object } of table.rows) await printValue(object, output)
  }
  const first = await fetchTable(client, resource, query)
  const version = first.metadata?.resourceVersion ?? first.rows[0]?.object?.metadata?.resourceVersion ?? '0'
  if (!options.watchOnly) await show(first)
  else if (isTable) printer.lines({ ...first, rows: [] })
  await watchTables(client, resource, { ...query, version }, table => {
    pending = pending.then(() => show(table))
  })
}
