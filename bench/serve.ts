/** The embedded server alone, in the data directory named by argv[2]; prints the path of its kubeconfig when it is ready. */
import { beginLeanStart, endLeanStart } from '../src/cli/lean-start.ts'

// Like `oarlock serve`, without the command line.
beginLeanStart()
const { startServer } = await import('../src/kubernetes/server/index.ts')
const server = await startServer({ dataDir: process.argv[2] as string, listen: { port: 0 } })
endLeanStart()
console.log(server.kubeconfigPath)
process.on('SIGTERM', () => {
  void server.close().then(() => process.exit(0))
})
