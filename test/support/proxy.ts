import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A network that can be cut: open connections are closed, new ones refused; and held: connections stay open, and nothing passes. */
export type NetworkProxy = { port: number; cut(): void; hold(): void; restore(): void; close(): void }

/** Forwards connections to a port of this machine. */
export async function startProxy(target: number): Promise<NetworkProxy> {
  const sockets = new Set<Socket>()
  let isCut = false
  const listener: Server = createServer(socket => {
    if (isCut) return void socket.destroy()
    const upstream = connect(target, '127.0.0.1')
    for (const each of [socket, upstream]) {
      sockets.add(each)
      each.on('error', () => {})
      each.on('close', () => {
        sockets.delete(each)
        socket.destroy()
        upstream.destroy()
      })
    }
    socket.pipe(upstream).pipe(socket)
  })
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  const cut = (): void => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  const hold = (): void => {
    for (const socket of sockets) {
      socket.unpipe()
      socket.pause()
    }
  }
  const restore = (): void => {
    isCut = false
  }
  const close = (): void => {
    cut()
    listener.close()
  }
  return { port: (listener.address() as AddressInfo).port, cut, hold, restore, close }
}
