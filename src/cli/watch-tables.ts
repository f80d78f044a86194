import { type Client, resourcePath } from '../kubernetes/client/index.ts'
import { isReason, type Resource, StatusError } from '../kubernetes/object/index.ts'
import type { ServerTable } from './output/print-objects.ts'
import { fetchTable, type TableQuery, tableAccept } from './output/print-objects.ts'

/** How long after a closed watch the next one starts, at least. */
const reconnectAfterMs = 500

/**
 * Calls `onTable` with a table for each event, in order, until the process is interrupted or the server rejects the watch. `version` is the resource
 * version of the list that was printed; when the server no longer has the events since, all objects are passed again, so that none is missed.
 */
export async function watchTables(
  client: Client,
  resource: Resource,
  query: TableQuery & { version: string },
  onTable: (table: ServerTable) => void,
): Promise<never> {
  let { version } = query
  for (;;) {
    try {
      const { body } = await client.stream({
        method: 'GET',
        path: resourcePath(resource, query.namespace),
        query: { ...queryOf(query), watch: 1, allowWatchBookmarks: true, resourceVersion: version },
        headers: { accept: tableAccept },
        idleTimeoutMs: 0,
      })
      for await (const event of lines(body)) {
        const { type, object } = JSON.parse(event) as { type: string; object: ServerTable & object }
        if (type === 'ERROR') throw StatusError.fromStatus(object as never)
        const row = object.rows?.[0]?.object?.metadata?.resourceVersion
        version = row ?? object.metadata?.resourceVersion ?? version
        if (type !== 'BOOKMARK') onTable(object)
      }
    } catch (error) {
      if (!isReason(error, 'Expired') && !isReason(error, 'Gone')) throw error
      const table = await fetchTable(client, resource, query)
      version = table.metadata?.resourceVersion ?? '0'
      onTable(table)
    }
    await new Promise(resolve => setTimeout(resolve, reconnectAfterMs))
  }
}

const queryOf = ({ name, labelSelector, fieldSelector, includeObject }: TableQuery) => ({
  labelSelector,
  includeObject,
  fieldSelector: [fieldSelector, name === undefined ? undefined : `metadata.name=${name}`].filter(Boolean).join(',') || undefined,
})

async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = parts.pop() ?? ''
    yield* parts.filter(part => part.trim() !== '')
  }
}
