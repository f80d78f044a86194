import type { OutgoingHttpHeader, OutgoingHttpHeaders } from 'node:http'
import type { AuditDetails } from '../audit/index.ts'

/** An array is a header with several lines. */
export type HeaderValue = OutgoingHttpHeader

/**
 * A response of any transport: node:http's `ServerResponse` is one, and so are the replies of our own HTTP/1.1, of HTTP/2 and of local
 * connections. Events: `drain`, and `close` when it has ended or the client has disconnected.
 */
export interface Reply extends NodeJS.WritableStream {
  readonly headersSent: boolean
  /** The HTTP status; 0 before the head was written. */
  readonly statusCode: number
  readonly destroyed: boolean
  readonly closed: boolean
  /** Bytes that were not sent yet. */
  readonly writableLength: number
  /** Bytes of a body that is still being prepared: they count as unsent. */
  pendingBytes?: number
  /** Warnings to send with an error; the list may still grow. */
  warningsOnFailure?: readonly string[] | undefined
  /** Set for a request that is audited. */
  audit?: AuditDetails | undefined
  /** Set for a request of a gateway, which learns the resource version that this server has reached. */
  reachedVersion?: (() => number) | undefined
  setHeader(name: string, value: HeaderValue): unknown
  getHeader(name: string): HeaderValue | undefined
  appendHeader(name: string, value: string): unknown
  writeHead(code: number, headers?: OutgoingHttpHeaders | OutgoingHttpHeader[]): unknown
  flushHeaders(): void
  destroy(): unknown
  /**
   * Sends bytes that are already framed as a chunk of HTTP/1.1; false when this response is not chunked.
   * @param done called when the bytes are no longer needed.
   */
  writeFramed?(framed: Buffer, done?: () => void): boolean
}
