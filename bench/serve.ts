/** The embedded server alone, in the data directory named by argv[2]; prints the path of its kubeconfig when it is ready. */
import { startServer } from '../src/server/index.ts'

const server = await startServer({ dataDir: process.argv[2] as string, listen: { port: 0 } })
console.log(server.kubeconfigPath)
process.on('SIGTERM', () => {
  void server.close().then(() => process.exit(0))
})
