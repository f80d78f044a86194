import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'

/** Below the ports that Linux gives to connections and to programs that listen on port 0: other tests would get one before it is used. */
const range = { from: 20_000, to: 32_000 }

/** Ports of 127.0.0.1 on which no program listened a moment ago, for programs that cannot listen on port 0. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listen))
  return await Promise.all(
    servers.map(async server => {
      const { port } = server.address() as AddressInfo
      server.close()
      await once(server, 'close')
      return port
    }),
  )
}

async function listen(): Promise<Server> {
  for (;;) {
    const server = createServer().listen(randomInt(range.from, range.to), '127.0.0.1')
    try {
      await once(server, 'listening')
      return server
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    }
  }
}
