import type { OutgoingHttpHeader, OutgoingHttpHeaders } from 'node:http'

/** A header that stands several times is an array. */
export type HeaderValue = OutgoingHttpHeader

/**
 * What an answer is written to, whatever brought its request: node:http's `ServerResponse` is one, and so are the replies of our own
 * HTTP/1.1 and of HTTP/2. Events: `drain`, and `close` once it has ended or the client is gone.
 */
export interface Reply extends NodeJS.WritableStream {
  readonly headersSent: boolean
  /** What it was answered with; 0 before that. */
  readonly statusCode: number
  readonly destroyed: boolean
  readonly closed: boolean
  /** Bytes that the client has not taken yet. */
  readonly writableLength: number
  setHeader(name: string, value: HeaderValue): unknown
  getHeader(name: string): HeaderValue | undefined
  appendHeader(name: string, value: string): unknown
  writeHead(code: number, headers?: OutgoingHttpHeaders | OutgoingHttpHeader[]): unknown
  flushHeaders(): void
  destroy(): unknown
  /**
   * Sends bytes that are framed as a chunk of HTTP/1.1 already; false when this answer is not sent in chunks.
   * @param done called when the bytes are no longer needed.
   */
  writeFramed?(framed: Buffer, done?: () => void): boolean
}
