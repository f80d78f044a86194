/** The embedded API server as a separate process: data directory in argv[2]; prints the path of its kubeconfig when it is ready. */
import { startServer } from '../../src/kubernetes/server/index.ts'

const server = await startServer({ dataDir: process.argv[2] as string, listen: { port: 0 } })
console.log(server.kubeconfigPath)
const stop = () => void server.close().then(() => process.exit(0))
process.on('SIGTERM', stop)
// Ctrl-C reaches the whole process group: the parent decides when the server stops.
process.on('SIGINT', () => undefined)
process.on('disconnect', stop)
