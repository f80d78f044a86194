import type { IncomingMessage, ServerResponse } from 'node:http'
import type { MountHandler } from '../mount.ts'
import type { JoinRejection, JoinResponse, JoinService } from './join-service.ts'

const maxBodyBytes = 16_384
const bodyTimeoutMs = 60_000

/**
 * `GET /join/ca` returns the certificate authority, for clients that have its pin. `POST /join` with `{"token", "name", "labels"}` returns
 * a credential. `POST /join/renew` with the current credential returns a new one. Proxies must not store the responses.
 */
export function createJoinHandler({ joinService, caCertificate }: { joinService: JoinService; caCertificate: string }): MountHandler {
  return async (request, response, { user }) => {
    const path = (request.url ?? '').split('?')[0]
    response.setHeader('Cache-Control', 'no-store')
    if (path === '/join/ca') {
      if (request.method !== 'GET') return sendJson(response, { code: 405, message: 'method not allowed: use GET' })
      response.writeHead(200, { 'Content-Type': 'application/x-pem-file' }).end(caCertificate)
      return
    }
    if (path !== '/join' && path !== '/join/renew')
      return sendJson(response, { code: 404, message: 'not found: use /join, /join/renew or /join/ca' })
    if (request.method !== 'POST') return sendJson(response, { code: 405, message: 'method not allowed: use POST' })
    // It needs no body: a client without a valid credential gets 401 immediately.
    if (path === '/join/renew') return sendJson(response, await joinService.renew(user))
    const body = await readJson(request)
    // The rest of the body is not read: Node closes the connection after the response.
    if (!request.complete) response.setHeader('Connection', 'close')
    if (body === undefined)
      return sendJson(response, { code: 400, message: `the body must be a JSON object of at most ${maxBodyBytes} bytes` })
    sendJson(response, await joinService.join(body.token, body.name, body.labels, request.socket.remoteAddress))
  }
}

function sendJson(response: ServerResponse, body: JoinResponse | JoinRejection | { code: number; message: string }): void {
  const code = 'code' in body ? body.code : 200
  response.writeHead(code, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}

async function readJson(request: IncomingMessage): Promise<Record<string, unknown> | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return undefined
  const chunks: Buffer[] = []
  let size = 0
  const timer = setTimeout(() => request.destroy(), bodyTimeoutMs)
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > maxBodyBytes) return undefined
      chunks.push(chunk)
    }
  } catch {
    // The client disconnected, or the time is over.
    return undefined
  } finally {
    clearTimeout(timer)
  }
  if (size === 0) return {}
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
