import { type Agent, Agent as HttpAgent, get as httpGet } from 'node:http'
import { Agent as HttpsAgent, get as httpsGet } from 'node:https'

/** Free ones are closed after so long: servers close them, too. */
const idleMs = 30_000
const openWithinMs = 5_000

/**
 * Connections to the state and log stores, shared by the Runs of a worker and opened before it has one: a TLS handshake takes as
 * long as the first three requests of a Run.
 * @param caCertificate PEM of the CA that signed the server's certificate. Default: the system's.
 */
export function openStoreConnections(storeUrl: string, caCertificate: string | undefined): Agent {
  const isTls = storeUrl.startsWith('https:')
  const agent = isTls
    ? new HttpsAgent({ keepAlive: true, timeout: idleMs, ca: caCertificate })
    : new HttpAgent({ keepAlive: true, timeout: idleMs })
  // The answer is of no interest: the connection stays, and one that cannot be opened is tried again by who needs it.
  const request = (isTls ? httpsGet : httpGet)(`${storeUrl}/livez`, { agent, timeout: openWithinMs })
  request.on('response', response => response.resume())
  request.on('timeout', () => request.destroy())
  request.on('error', () => {})
  return agent
}
