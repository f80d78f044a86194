import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** A server that counts who reaches it: on any port of a host, or at the path of a Unix socket (an abstract one begins with NUL). */
export async function countConnections(hostOrPath: string): Promise<{ port: number; connections(): number; close(): void }> {
  let count = 0
  const server = createServer(socket => {
    count++
    socket.on('error', () => {})
    socket.end()
  })
  if (/^[\0/]/.test(hostOrPath)) server.listen(hostOrPath)
  else server.listen(0, hostOrPath)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { port, connections: () => count, close: () => void server.close() }
}
