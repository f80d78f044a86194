import { once } from 'node:events'
import { StatusError } from '../../kubernetes/object/index.ts'
import type { Call, Routes } from './route.ts'
import type { SessionRecord } from './sessions.ts'

export const logRoutes: Routes = { 'GET logs': passLogOfSession }

/** Each is a connection of its browser, and one to the log store. */
const maxLogsPerSession = 16
const openLogs = new WeakMap<SessionRecord, number>()

async function passLogOfSession(call: Call): Promise<void> {
  const { session } = call
  const open = openLogs.get(session) ?? 0
  if (open >= maxLogsPerSession)
    throw new StatusError('TooManyRequests', `this session reads ${open} logs: close other windows of the console`)
  openLogs.set(session, open + 1)
  try {
    await passLog(call)
  } finally {
    openLogs.set(session, (openLogs.get(session) ?? 1) - 1)
  }
}

/** Of the log store: see `stores/log/log-handler.ts`. */
const parameters = ['follow', 'timestamps', 'tail', 'offset', 'since']

/**
 * Passes the log of a Run as it arrives, read with the rights of the user. A log that ends is a response that ends; one that is cut off, because its
 * store or the right to read it is gone, is a connection that breaks: the page continues at the offset that it has.
 */
async function passLog({ client, path: [namespace = '', name = ''], query, response }: Call): Promise<void> {
  const stores = await client()
  const abort = new AbortController()
  response.once('close', () => abort.abort())
  const { body, headers } = await stores.stream({
    ...{ method: 'GET', path: `/logs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}` },
    query: Object.fromEntries(parameters.flatMap(key => (query.has(key) ? [[key, query.get(key) as string]] : []))),
    ...{ headers: { accept: 'text/plain' }, signal: abort.signal, idleTimeoutMs: 0 },
  })
  response.writeHead(200, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    // Proxies such as nginx must not hold lines back.
    'X-Accel-Buffering': 'no',
    ...(headers['oarlock-times'] !== undefined && { 'Oarlock-Times': headers['oarlock-times'] }),
  })
  response.flushHeaders()
  try {
    for await (const chunk of body) if (!response.write(chunk)) await once(response, 'drain', { signal: abort.signal })
    response.end()
  } catch (error) {
    if (!abort.signal.aborted) throw error
  }
}
