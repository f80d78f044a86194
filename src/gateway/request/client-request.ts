import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { drained } from '../../kubernetes/util/index.ts'

/** A request of a client as far as the gateway reads it: of node:http, or of the server's own HTTP/1.1 and HTTP/2, which take less work. */
export type ClientRequest = {
  readonly method?: string | undefined
  /** Path and query. */
  readonly url?: string | undefined
  readonly headers: IncomingHttpHeaders
  /** The connection, which has the client certificate. */
  readonly socket: Socket
  /** The whole body, if it was read before. */
  readonly body?: Buffer
  on(event: 'data', listener: (chunk: Buffer) => void): unknown
  on(event: 'end' | 'error', listener: () => void): unknown
  removeAllListeners(event: 'data'): unknown
  resume(): unknown
}

/** The response to it. Events: `drain`, and `close` when it has ended or the client has disconnected. */
export interface ClientResponse extends NodeJS.WritableStream {
  readonly headersSent: boolean
  readonly statusCode: number
  readonly destroyed: boolean
  readonly closed: boolean
  /** Whether its end was written, sent or not. */
  readonly writableEnded: boolean
  /** Bytes that were not sent yet. */
  readonly writableLength: number
  setHeader(name: string, value: number | string | readonly string[]): unknown
  writeHead(code: number, headers?: OutgoingHttpHeaders): unknown
  flushHeaders(): void
  destroy(): unknown
  /** Sends bytes that are already framed as a chunk of HTTP/1.1; false when this response is not chunked. */
  writeFramed?(framed: Buffer): boolean
}

/** Resolves when the response has ended, or its client has disconnected. */
export function closed(response: ClientResponse): Promise<void> {
  if (response.closed || response.destroyed) return Promise.resolve()
  return new Promise(resolve => response.once('close', () => resolve()))
}

/** Sends a body at the speed of the client. Leaves off when the client has disconnected. @throws what the body throws. */
export async function sendBody(body: AsyncIterable<Uint8Array>, response: ClientResponse): Promise<void> {
  for await (const chunk of body) {
    if (response.closed || response.destroyed) return
    if (!response.write(chunk)) await drained(response)
  }
  response.end()
}
