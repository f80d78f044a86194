import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { User } from '../auth/index.ts'
import type { Reply } from '../wire/index.ts'

/** A request of any transport, as far as the server reads it. */
export type HttpRequest = {
  readonly method?: string
  readonly url?: string
  readonly headers: IncomingHttpHeaders
  /** The connection, which carries the client certificate. */
  readonly socket: Socket
  /** The whole body, when it was read before the request was dispatched. */
  readonly body?: Buffer
  on(event: 'data', listener: (chunk: Buffer) => void): unknown
  on(event: 'end' | 'error', listener: () => void): unknown
  removeAllListeners(event: 'data'): unknown
  resume(): unknown
}

/** Serves one request. Never throws, and always sends a response. */
export type Handler = (request: HttpRequest, reply: Reply) => void

/**
 * An additional route next to the Kubernetes API. Requests are authenticated; authorization is up to the handler.
 * Its requests come from node:http, or from node:http2's compatibility API.
 */
export type Mount = {
  prefix: string
  handler: (
    request: IncomingMessage,
    response: ServerResponse,
    context: {
      user: User | undefined
      /** For long responses: the user of the same credential now; undefined if it is no longer valid. */
      reauthenticate(): Promise<User | undefined>
      /** Records the request, as that of a user whom the handler has authenticated itself. */
      audit(user: User): void
    },
  ) => void | Promise<void>
}
