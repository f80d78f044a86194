import type { TLSSocket } from 'node:tls'

/** Sends raw bytes and reads the status of each response. Opens a new connection when the server has closed the previous one. */
export class RawClient {
  readonly #open: () => TLSSocket
  #socket: TLSSocket | undefined

  constructor(open: () => TLSSocket) {
    this.#open = open
  }

  /** Returns the status of the response, or 0 if the connection ended without one. */
  async send(bytes: Buffer): Promise<{ status: number; text: string }> {
    const socket = this.#socket ?? this.#open()
    this.#socket = undefined
    const response = await new Promise<{ status: number; text: string; isReusable: boolean }>(resolve => {
      let text = ''
      const done = (isReusable: boolean) => {
        socket.removeAllListeners('data').removeAllListeners('close')
        resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text, isReusable })
      }
      socket.on('data', chunk => {
        text += chunk.toString('latin1')
        if (text.startsWith('HTTP/1.1 100')) text = text.slice(text.indexOf('\r\n\r\n') + 4)
        if (isCompleteResponse(text, bytes)) done(!/^connection: close/im.test(text))
      })
      socket.on('close', () => done(false))
      socket.write(bytes)
    })
    if (response.isReusable && !socket.destroyed) this.#socket = socket
    else socket.destroy()
    return response
  }

  close(): void {
    this.#socket?.destroy()
  }
}

function isCompleteResponse(text: string, request: Buffer): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const head = text.slice(0, end)
  if (request.subarray(0, 5).toString() === 'HEAD ' || /^HTTP\/1\.1 (204|304)/.test(head)) return true
  const length = /^content-length: (\d+)/im.exec(head)?.[1]
  if (length !== undefined) return text.length - end - 4 >= Number(length)
  return text.endsWith('\r\n0\r\n\r\n') || text.endsWith('\n0\r\n\r\n')
}
