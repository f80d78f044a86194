/** The embedded API server in a process of its own: data directory in argv[2]; prints the path of its kubeconfig when it is ready. */
import { startServer } from '../../src/kubernetes/server/index.ts'

const server = await startServer({ dataDir: process.argv[2] as string, listen: { port: 0 } })
console.log(server.kubeconfigPath)
const stop = () => void server.close().then(() => process.exit(0))
process.on('SIGTERM', stop)
// Ctrl-C reaches the whole group: the starter says when it is our turn.
process.on('SIGINT', () => undefined)
process.on('disconnect', stop)
