import type { IncomingMessage, ServerResponse } from 'node:http'
import type { JoinRejection, JoinResponse, JoinService } from './join-service.ts'

const maxBodyBytes = 16_384

export type JoinUser = { name: string; groups: readonly string[] }

/**
 * `GET /join/ca` returns the certificate authority, for clients that have its pin. `POST /join` with `{"token", "name", "labels"}` returns
 * a credential. `POST /join/renew` with the current credential returns a new one. Proxies must not store the responses.
 */
export function createJoinHandler({ joinService, caCertificate }: { joinService: JoinService; caCertificate: string }) {
  return async (request: IncomingMessage, response: ServerResponse, { user }: { user: JoinUser | undefined }): Promise<void> => {
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
    const body = await readJson(request)
    if (body === undefined)
      return sendJson(response, { code: 400, message: `the body must be a JSON object of at most ${maxBodyBytes} bytes` })
    sendJson(response, path === '/join' ? await joinService.join(body.token, body.name, body.labels) : await joinService.renew(user))
  }
}

function sendJson(response: ServerResponse, body: JoinResponse | JoinRejection | { code: number; message: string }): void {
  const code = 'code' in body ? body.code : 200
  response.writeHead(code, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}

async function readJson(request: IncomingMessage): Promise<Record<string, unknown> | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    // The rest is read and discarded, so that the client gets the response.
    if (size <= maxBodyBytes) chunks.push(chunk)
  }
  if (size > maxBodyBytes) return undefined
  if (size === 0) return {}
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
