import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/**
 * A TCP proxy in front of the API server, for one replica: counts what the replica receives, and cuts its network. A cut connection stays open and
 * carries nothing, as when packets are dropped: neither side learns of it.
 */
export class ReplicaProxy {
  receivedBytes = 0
  #isCut = false
  readonly #server: Server
  readonly #pairs = new Set<[client: Socket, server: Socket]>()

  private constructor(target: { host: string; port: number }) {
    this.#server = createServer(client => {
      const server = connect(target)
      const pair: [Socket, Socket] = [client, server]
      this.#pairs.add(pair)
      client.on('data', chunk => void (server.write(chunk) || client.pause()))
      server.on('drain', () => this.#isCut || client.resume())
      server.on('data', chunk => {
        this.receivedBytes += chunk.length
        if (!client.write(chunk)) server.pause()
      })
      client.on('drain', () => this.#isCut || server.resume())
      for (const [from, to] of [pair, pair.toReversed() as [Socket, Socket]]) {
        from.on('error', () => to.destroy())
        from.on('end', () => this.#isCut || to.end())
        from.on('close', () => {
          this.#pairs.delete(pair)
          // What ends during the cut is not seen by the other side.
          if (!this.#isCut) to.destroy()
        })
      }
      if (this.#isCut) this.#hold(pair)
    })
  }

  /** Listens on a free port of the loopback, and writes a kubeconfig that leads to it. */
  static async start(kubeconfig: string, path: string): Promise<ReplicaProxy> {
    const text = readFileSync(kubeconfig, 'utf8')
    const url = new URL(/server: "?(https:\/\/[^"\s]+)"?/.exec(text)?.[1] ?? '')
    const proxy = new ReplicaProxy({ host: url.hostname, port: Number(url.port) })
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    const { port } = proxy.#server.address() as AddressInfo
    writeFileSync(path, text.replaceAll(`${url.hostname}:${url.port}`, `127.0.0.1:${port}`), { mode: 0o600 })
    return proxy
  }

  cut(): void {
    this.#isCut = true
    for (const pair of this.#pairs) this.#hold(pair)
  }

  /** Connections that were cut are closed, as after a partition that outlived their timeouts. */
  restore(): void {
    this.#isCut = false
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy()
    this.#pairs.clear()
  }

  close(): void {
    this.#server.close()
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy()
  }

  #hold(pair: readonly Socket[]): void {
    for (const socket of pair) socket.pause()
  }
}
