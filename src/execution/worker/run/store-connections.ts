import type { Agent } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { parseServerAddress, sha256, socketAgentOptions } from '../../../kubernetes/util/index.ts'

/** Idle connections are closed after this time, as servers do. */
const idleTimeoutMs = 30_000
const connectTimeoutMs = 5_000

/** Connections to the state and log stores, shared by the Runs of a worker. */
export class StoreConnections {
  readonly #baseUrl: string
  readonly #socketPath: string | undefined
  readonly #caCertificate: string | undefined
  #agent: Agent | undefined

  /** @param caCertificate PEM of the CA that signed the server's certificate. Default: the system's. */
  constructor(storeUrl: string, caCertificate: string | undefined) {
    const { baseUrl, socketPath } = parseServerAddress(storeUrl)
    this.#baseUrl = baseUrl
    this.#socketPath = socketPath
    this.#caCertificate = caCertificate
  }

  /** Created on first use, because it loads node:http: a worker registers first. */
  get agent(): Agent {
    const ca = this.#caCertificate
    this.#agent ??= new this.#http.Agent({
      ...{ keepAlive: true, timeout: idleTimeoutMs },
      ...(ca && { ca }),
      ...(this.#socketPath !== undefined && socketAgentOptions(this.#socketPath)),
    })
    return this.#agent
  }

  /**
   * Loads node:http, and node:crypto, which the first Run needs, two turns of the event loop later: the requests of this turn have left then,
   * and while their responses are awaited the time is free.
   */
  async loadModules(): Promise<void> {
    await nextTurn()
    await nextTurn()
    void this.#http
    sha256('')
  }

  /**
   * Opens a connection before the first Run: a TLS handshake takes as long as the first three requests of a Run, while a Unix socket needs
   * none. The response is ignored; if the connection fails, the next request opens another.
   */
  prewarm(): void {
    if (this.#socketPath !== undefined) return
    const request = this.#http.get(`${this.#baseUrl}/livez`, { agent: this.agent, timeout: connectTimeoutMs })
    request.on('response', response => response.resume())
    request.on('timeout', () => request.destroy())
    request.on('error', () => {})
  }

  destroy(): void {
    this.#agent?.destroy()
  }

  get #http() {
    return process.getBuiltinModule(this.#baseUrl.startsWith('https:') ? 'node:https' : 'node:http')
  }
}
