import type { IncomingMessage, Server, ServerResponse } from 'node:http'

/**
 * Sends `100 Continue` to a client that waits for it before it sends the body. Node's own listener sends it too early for a pipelined request:
 * between the head and the body of the response to the request before.
 */
export function sendContinue(server: Pick<Server, 'on' | 'emit'>): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (response.socket) response.writeContinue()
    else
      response.once('socket', () => {
        if (!response.headersSent) response.writeContinue()
      })
    server.emit('request', request, response)
  })
}
