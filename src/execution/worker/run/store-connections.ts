import type { Agent } from 'node:http'

/** Free ones are closed after so long: servers close them, too. */
const idleMs = 30_000
const openWithinMs = 5_000

/**
 * Connections to the state and log stores, shared by the Runs of a worker.
 * @param caCertificate PEM of the CA that signed the server's certificate. Default: the system's.
 */
export function createStoreAgent(storeUrl: string, caCertificate: string | undefined): Agent {
  const { Agent } = moduleFor(storeUrl)
  return new Agent({ keepAlive: true, timeout: idleMs, ...(caCertificate && { ca: caCertificate }) })
}

/**
 * Opens a connection before there is a Run: a TLS handshake takes as long as the first three requests of one. The answer is of no
 * interest, and a connection that cannot be opened is tried again by who needs it.
 */
export function prewarmStoreConnection(agent: Agent, storeUrl: string): void {
  const request = moduleFor(storeUrl).get(`${storeUrl}/livez`, { agent, timeout: openWithinMs })
  request.on('response', response => response.resume())
  request.on('timeout', () => request.destroy())
  request.on('error', () => {})
}

const moduleFor = (url: string) => process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http')
