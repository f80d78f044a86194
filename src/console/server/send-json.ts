import type { ServerResponse } from 'node:http'

/** @param body bytes are JSON already. */
export function sendJson(response: ServerResponse, code: number, body: unknown): void {
  const headers = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
  response.writeHead(code, headers).end(body instanceof Uint8Array ? body : JSON.stringify(body))
}
