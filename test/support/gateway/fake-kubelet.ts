import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Stream } from 'node:stream'
import type { KubeletCertificates } from '../../../src/kubernetes/server/index.ts'

/**
 * The endpoints of a kubelet over TLS with client certificates: a log that continues until it is closed, and streams that send back what they get.
 * When a client has ended its side, it gets one more text.
 */
export class FakeKubelet implements AsyncDisposable {
  readonly requests: { url: string; headers: Record<string, unknown> }[] = []
  readonly open = new Set<Stream & { destroy(): unknown }>()
  /** After this time the log of a Pod `silent` has its first and only line. */
  silentMs = 0
  readonly port: number
  readonly #close: () => Promise<unknown>

  private constructor(port: number, close: () => Promise<unknown>) {
    this.port = port
    this.#close = close
  }

  static async start({ serving, clientCa }: KubeletCertificates): Promise<FakeKubelet> {
    const tls = { cert: serving.certificate, key: serving.key, ca: clientCa, requestCert: true, rejectUnauthorized: true }
    const server = createServer(tls, ({ url = '', headers }, response) => {
      kubelet.requests.push({ url, headers })
      kubelet.open.add(response)
      response.once('close', () => kubelet.open.delete(response))
      // The kubelet sends the head with the first line too.
      if (url.includes('/silent/')) {
        setTimeout(() => response.end('late\n'), kubelet.silentMs).unref()
        return
      }
      response.write('line 1\n')
      if (!url.includes('follow=true')) {
        response.end('line 2\n')
        return
      }
      let number = 1
      const timer = setInterval(() => response.write(`line ${++number}\n`), 10)
      response.once('close', () => clearInterval(timer))
    })
    server.on('upgrade', ({ url = '', headers }, socket, head) => {
      kubelet.requests.push({ url, headers })
      kubelet.open.add(socket)
      socket.once('close', () => kubelet.open.delete(socket))
      socket.on('error', () => socket.destroy())
      socket.allowHalfOpen = true
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${headers.upgrade}\r\n\r\nhello `)
      if (head.length > 0) socket.write(head)
      socket.on('data', data => socket.write(data))
      // What a client gets after it has ended its own side.
      socket.on('end', () => socket.end('after the end'))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const kubelet: FakeKubelet = new FakeKubelet((server.address() as AddressInfo).port, async () => {
      for (const each of kubelet.open) each.destroy()
      server.closeAllConnections()
      server.close()
    })
    return kubelet
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close()
  }
}
