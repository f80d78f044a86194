import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sendContinue } from '../../kubernetes/util/index.ts'
import { limitConnections } from './limit-connections.ts'
import type { PulumiHandler } from './pulumi-handler.ts'

/** The CLI opens fewer than 10. */
const maxConnections = 128

export type PulumiEndpoint = {
  /** `http://127.0.0.1:<port>`; for a Unix socket `unix:<path>`, which needs a relay: the CLI has no way to name one. */
  readonly url: string
  /** Ends all connections. */
  close(): Promise<void>
}

/**
 * Serves the protocol on the loopback interface, on a free port, or on a Unix socket.
 * @throws if the socket cannot be created.
 */
export async function listenPulumi(handler: PulumiHandler, at: { readonly socketPath?: string } = {}): Promise<PulumiEndpoint> {
  const { socketPath } = at
  // Not imported: a worker loads node:http after its registration.
  const server: Server = process
    .getBuiltinModule('node:http')
    .createServer(
      { maxHeaderSize: 16_384, headersTimeout: 10_000, requestTimeout: 120_000, keepAliveTimeout: 60_000 },
      (req, res) => void handler.handle(req, res),
    )
  limitConnections(server, maxConnections)
  sendContinue(server)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(socketPath === undefined ? { host: '127.0.0.1', port: 0 } : { path: socketPath }, resolve)
  })
  return {
    url: socketPath === undefined ? `http://127.0.0.1:${(server.address() as AddressInfo).port}` : `unix:${socketPath}`,
    close: async () => {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
}
