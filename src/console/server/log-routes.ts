import type { Call, Routes } from './route.ts'

export const logRoutes: Routes = { 'GET logs': passLog }

/** The log of a Run, as it arrives. */
async function passLog({ client, path: [namespace = '', name = ''], query, response }: Call): Promise<void> {
  const stores = await client()
  const abort = new AbortController()
  response.once('close', () => abort.abort())
  const { body } = await stores.stream({
    ...{ method: 'GET', path: `/logs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}` },
    query: Object.fromEntries(
      ['follow', 'timestamps', 'tail', 'since'].flatMap(key => (query.has(key) ? [[key, query.get(key) as string]] : [])),
    ),
    ...{ headers: { accept: 'text/plain' }, signal: abort.signal, idleTimeoutMs: 0 },
  })
  response.writeHead(200, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  })
  response.flushHeaders()
  try {
    for await (const chunk of body)
      if (!response.write(chunk)) await new Promise(resolve => response.once('drain', resolve).once('close', resolve))
    response.end()
  } catch (error) {
    if (!abort.signal.aborted) throw error
  }
}
