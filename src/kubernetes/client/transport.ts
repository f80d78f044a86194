import type { Authentication } from './authenticator.ts'

/** One HTTP request, ready to be sent. `timeoutMs` bounds the wait for the response head and each pause within its body. */
export type TransportRequest = {
  method: string
  path: string
  headers: Record<string, string | string[]>
  body?: string | Uint8Array | undefined
  timeoutMs: number
  signal?: AbortSignal | undefined
  /** Called immediately before the request is written to its connection; if it throws, nothing is sent and the request rejects. */
  beforeSend?: (() => void) | undefined
  /** As in `RequestOptions`. */
  resetSignal?: AbortSignal | undefined
  /** The response is small and comes soon: the request may share a connection with others that await their responses. */
  isShort?: boolean
  /**
   * Short requests with the same key that are sent in one turn of the event loop share a connection: they leave in one write, and their responses come in one.
   * For those of which none waits for long, because the others wait for it. Default: a request prefers a connection of its own.
   */
  batchKey?: string | undefined
}

/** A complete response. Header names are in lower case. */
export type TransportResponse = { status: number; headers: Record<string, string | string[] | undefined>; body: string }

/** A response that is still being received. Leaving the loop over `body` closes the connection. */
export type TransportStreamResponse = { status: number; headers: TransportResponse['headers']; body: AsyncIterable<Buffer> }

/** Sends the requests of a client: over the network ({@link HttpTransport}) or within the process ({@link LocalTransport}). */
export type Transport = {
  /** Sends a request and collects its response. Rejects with an error that has a `code`, or with the reason of the signal. */
  request(request: TransportRequest, certificate: Authentication['certificate']): Promise<TransportResponse>
  /**
   * Sends a request with a long-lived response. The promise resolves with the head. The body throws an error with a
   * `code` when the connection breaks, and ends without an error when the signal aborts.
   */
  stream(
    request: TransportRequest & { idleTimeoutMs: number },
    certificate: Authentication['certificate'],
  ): Promise<TransportStreamResponse>
  close(): Promise<void>
}

/** The largest response that is held in memory as a whole. */
export const maxResponseBytes = 268_435_456

export function responseTooLarge(limitBytes: number): Error {
  return new Error(`the response is larger than ${limitBytes} bytes: list in pages with limit`)
}
