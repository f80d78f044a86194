import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { User } from '../auth/index.ts'
import type { Reply } from '../wire/index.ts'

/** What the server reads of a request, whatever brought it. */
export type HttpRequest = {
  readonly method?: string
  readonly url?: string
  readonly headers: IncomingHttpHeaders
  /** The connection: who is on the other side is known by it. */
  readonly socket: Socket
  /** The whole body, when it came before the request was handed on. */
  readonly body?: Buffer
  on(event: 'data', listener: (chunk: Buffer) => void): unknown
  on(event: 'end' | 'error', listener: () => void): unknown
  removeAllListeners(event: 'data'): unknown
  resume(): unknown
}

/** Answers one request. Never throws, and leaves none unanswered. */
export type Handler = (request: HttpRequest, reply: Reply) => void

/**
 * A route beside Kubernetes' own; who makes the request is known, what they may do is for the handler to decide.
 * Its requests come through node:http, or node:http2's compatible API.
 */
export type Mount = {
  prefix: string
  handler: (request: IncomingMessage, response: ServerResponse, context: { user: User | undefined }) => void | Promise<void>
}
