/**
 * The API server of a partition, as a process: `node partition-child.ts OPTIONS`, in JSON. Prints what a client needs as JSON when it is ready. `skewMs` is
 * how far its clock is wrong.
 */
import type { ServerOptions } from '../../../src/kubernetes/server/index.ts'

export type PartitionChildOptions = Pick<ServerOptions, 'dataDir' | 'partition' | 'listen' | 'frontProxy' | 'storage'> & {
  readonly skewMs?: number
}

const { skewMs = 0, ...options } = JSON.parse(process.argv[2] ?? '{}') as PartitionChildOptions
if (skewMs !== 0) {
  const now = Date.now
  // Before any module of the server is loaded.
  Date.now = () => now() + skewMs
}
const { startServer } = await import('../../../src/kubernetes/server/index.ts')
const server = await startServer(options)
const { url, port, caCertificate, kubeconfigPath } = server
process.stdout.write(`${JSON.stringify({ url, port, caCertificate, kubeconfigPath })}\n`)
process.on('SIGTERM', () => {
  void server.close({ graceMs: 10 }).then(() => process.exit(0))
})
