import { resourcePath } from '../../kubernetes/client/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { usageError } from '../cli-error.ts'
import { note, print } from '../console.ts'
import { discoverTypes, findTypes } from '../find-types.ts'
import type { OutputFormat } from '../output/output-formats.ts'
import { fetchTable, objectName, serialize, tableLines } from '../output/print-objects.ts'

export type GetOptions = AccessOptions & { output?: OutputFormat; selector?: string }

/** `oarlock get TYPE [NAME…]` or `TYPE/NAME`: lists objects of any kind that the server has. */
export async function get(typed: string, names: string[], options: GetOptions): Promise<void> {
  const slash = typed.indexOf('/')
  if (slash > 0) return await get(typed.slice(0, slash), [typed.slice(slash + 1), ...names], options)
  if (names.length > 0 && options.allNamespaces)
    throw usageError('a name cannot be combined with --all-namespaces', 'omit -A, and choose the namespace with -n')
  await withClient(options, async client => {
    const types = findTypes(typed, await discoverTypes(client))
    const { output, selector } = options
    const collected: unknown[] = []
    let printed = 0
    for (const resource of types) {
      const namespace = resource.scope === 'Cluster' || options.allNamespaces ? undefined : namespaceOf(client, options)
      for (const name of names.length > 0 ? names : [undefined]) {
        if (output === 'json' || output === 'yaml') {
          const response = await client.request({
            method: 'GET',
            path: resourcePath(resource, namespace, name),
            query: { labelSelector: selector },
          })
          collected.push(await response.json())
          continue
        }
        const table = await fetchTable(client, resource, { namespace, name, labelSelector: selector })
        if (table.rows.length === 0) continue
        if (output === 'name') for (const { object } of table.rows) print(objectName(resource, object?.metadata?.name ?? ''))
        else {
          if (printed > 0 && types.length > 1) print('')
          const withNamespace = resource.scope === 'Namespaced' && options.allNamespaces === true
          const lines = tableLines(table, {
            wide: output === 'wide',
            withNamespace,
            prefix: types.length > 1 ? `${objectName(resource, '')}` : undefined,
          })
          for (const line of printed > 0 && names.length > 1 ? lines.slice(1) : lines) print(line)
        }
        printed += table.rows.length
      }
    }
    if (output === 'json' || output === 'yaml') return print(await serialize(asOne(collected), output))
    if (printed === 0)
      note(
        options.allNamespaces || types.every(({ scope }) => scope === 'Cluster')
          ? 'no objects found'
          : `no objects found in namespace ${namespaceOf(client, options)}; use -A for all namespaces`,
      )
  })
}

/** One response unchanged; several as one List, as kubectl prints them. */
function asOne(responses: unknown[]): unknown {
  if (responses.length === 1) return responses[0]
  const items = responses.flatMap(response => (response as { items?: unknown[] }).items ?? [response])
  return { apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '' }, items }
}
