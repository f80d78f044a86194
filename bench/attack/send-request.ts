import { request as httpRequest } from 'node:http'
import { type Agent, request as httpsRequest } from 'node:https'

export type Response = { status: number; headers: Record<string, string | string[] | undefined>; text: string }
export type SendOptions = {
  token?: string | undefined
  headers?: Record<string, string>
  /** Text, or an object that is sent as JSON. */
  body?: string | object
  contentType?: string
  ca?: string
  /** Whose connections are used again; by default the request has a connection of its own. */
  agent?: Agent
  /** A Unix socket instead of the address. */
  socketPath?: string
}

/** Sends one request. The path and the header Host are sent as they are. */
export function sendRequest(
  url: string,
  method: string,
  path: string,
  { token, headers, body, contentType, ca, agent, socketPath }: SendOptions,
): Promise<Response> {
  const { protocol, hostname, port } = new URL(url)
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  const all: Record<string, string> = {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(text !== undefined && { 'content-type': contentType ?? 'application/json', 'content-length': String(Buffer.byteLength(text)) }),
    ...headers,
  }
  return new Promise((resolve, reject) => {
    const answer = (response: import('node:http').IncomingMessage) => {
      const chunks: Buffer[] = []
      response.on('data', chunk => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString() }),
      )
    }
    const options = { method, path, headers: all, agent: false as const, timeout: 30_000 }
    const request =
      socketPath !== undefined
        ? httpRequest({ ...options, socketPath }, answer)
        : protocol === 'https:'
          ? httpsRequest({ ...options, hostname, port, ca, agent: agent ?? false }, answer)
          : httpRequest({ ...options, hostname, port }, answer)
    request.on('error', reject)
    request.on('timeout', () => request.destroy(new Error(`${method} ${path} was not answered within 30 s`)))
    request.end(text)
  })
}
