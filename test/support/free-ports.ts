import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** Ports of 127.0.0.1 on which no program listened a moment ago, for programs that cannot listen on port 0. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map(server => once(server, 'listening')))
  return await Promise.all(
    servers.map(async server => {
      const { port } = server.address() as AddressInfo
      server.close()
      await once(server, 'close')
      return port
    }),
  )
}
