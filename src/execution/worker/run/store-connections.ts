import type { Agent } from 'node:http'

/** Idle connections are closed after this time, as servers do. */
const idleTimeoutMs = 30_000
const connectTimeoutMs = 5_000

/**
 * Connections to the state and log stores, shared by the Runs of a worker.
 * @param caCertificate PEM of the CA that signed the server's certificate. Default: the system's.
 */
export function createStoreAgent(storeUrl: string, caCertificate: string | undefined): Agent {
  const { Agent } = moduleFor(storeUrl)
  return new Agent({ keepAlive: true, timeout: idleTimeoutMs, ...(caCertificate && { ca: caCertificate }) })
}

/**
 * Opens a connection before the first Run: a TLS handshake takes as long as the first three requests of a Run. The response is ignored;
 * if the connection fails, the next request opens another.
 */
export function prewarmStoreConnection(agent: Agent, storeUrl: string): void {
  const request = moduleFor(storeUrl).get(`${storeUrl}/livez`, { agent, timeout: connectTimeoutMs })
  request.on('response', response => response.resume())
  request.on('timeout', () => request.destroy())
  request.on('error', () => {})
}

const moduleFor = (url: string) => process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http')
