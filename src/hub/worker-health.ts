import type { AddressInfo } from 'node:net'
import type { WorkerHealth } from '../worker/index.ts'
import { type Address, formatAddress } from './address.ts'

/**
 * Health of one worker, for a kubelet or whatever else keeps it running: `/startupz` is 200 once it has registered, `/readyz` while it
 * may be given Runs (registered, its Lease fresh, not draining), `/livez` as long as its event loop turns, which answering shows,
 * and its Lease was renewed not too long ago. 503 comes with the reason. It shows nothing else and needs no password.
 */
export async function startWorkerHealth(
  address: Address,
  health: () => WorkerHealth,
): Promise<{ readonly address: Address; close(): void }> {
  const { createServer } = process.getBuiltinModule('node:http')
  const server = createServer((request, response) => {
    response.on('error', () => {})
    const { live, ready, started } = health()
    const reasons = { '/livez': live, '/healthz': live, '/readyz': ready, '/startupz': started }[(request.url ?? '').split('?')[0] ?? '']
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const status = !isRead ? 405 : reasons === undefined ? 404 : reasons.length === 0 ? 200 : 503
    const text = reasons === undefined ? 'there is /livez, /readyz and /startupz' : reasons.join('\n') || 'ok'
    response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' }).end(`${text}\n`)
  })
  server.headersTimeout = 10_000
  server.requestTimeout = 10_000
  server.maxConnections = 64
  server.on('clientError', (_error, socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', error =>
      reject(new Error(`${formatAddress(address)}, the address of the worker's health, cannot be listened on: ${error.message}`)),
    )
    server.listen(address.port, address.host, resolve)
  })
  // It does not keep the worker alive.
  server.unref()
  const { port } = server.address() as AddressInfo
  return {
    address: { host: address.host, port },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
