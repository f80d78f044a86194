import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'

/** A request as the handler receives it, with its complete body. */
export type ScriptedRequest = { method: string; path: string; query: URLSearchParams; headers: IncomingMessage['headers']; body: string }
export type RequestHandler = (request: ScriptedRequest, response: ServerResponse) => void | Promise<void>

export type ScriptedServer = {
  url: string
  requests: ScriptedRequest[]
  setHandler(handler: RequestHandler): void
  closeConnections(): void
  close(): Promise<void>
}

/** An HTTP server on a free port whose responses come from `handler`, including protocol violations; records its requests. */
export async function startScriptedServer(
  handler: RequestHandler,
  tls?: { key: string; cert: string; ca?: string },
): Promise<ScriptedServer> {
  const requests: ScriptedRequest[] = []
  let current = handler
  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const url = new URL(incoming.url ?? '/', 'http://localhost')
    let body = ''
    for await (const chunk of incoming) body += chunk
    const request = { method: incoming.method ?? '', path: url.pathname, query: url.searchParams, headers: incoming.headers, body }
    requests.push(request)
    await current(request, response)
  }
  const listener = (incoming: IncomingMessage, response: ServerResponse) => {
    handle(incoming, response).catch(error => response.destroy(error))
  }
  const server: Server = tls
    ? createTlsServer({ ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: false }, listener)
    : createServer(listener)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    requests,
    setHandler: next => {
      current = next
    },
    closeConnections: () => server.closeAllConnections(),
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export function respondJson(response: ServerResponse, value: unknown, status = 200, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
}

export function respondStatus(response: ServerResponse, code: number, reason: string, headers: Record<string, string> = {}): void {
  respondJson(
    response,
    { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: `scripted ${reason}`, reason, code },
    code,
    headers,
  )
}
