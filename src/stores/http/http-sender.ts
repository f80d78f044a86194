import type { Agent, ClientRequest, IncomingHttpHeaders } from 'node:http'

export type HttpStoreRequest = {
  method: string
  url: string
  headers: Record<string, string>
  body?: Uint8Array | undefined
  signal?: AbortSignal | undefined
  /** Maximum time without a byte: before the connection, before the response and within it. */
  idleTimeoutMs: number
}

export type HttpResponse = { status: number; headers: IncomingHttpHeaders; body: Buffer }

export type HttpSenderOptions = {
  connections: number
  /** PEM of the CA of the server's certificate. Default: the system's CAs. */
  caCertificate?: string | undefined
  /** Connections use this Unix socket instead of the host and port of the URL. */
  socketPath?: string | undefined
  /** Shared connections: the other options are ignored, and {@link HttpSender.destroy} does not close them. */
  agent?: Agent | undefined
}

/**
 * Sends requests to one server over persistent connections. It uses only `node:http`: a worker starts for each Run, and an HTTP
 * library would be a third of its memory and of its startup time.
 */
export class HttpSender {
  readonly #options: HttpSenderOptions
  readonly #active = new Set<ClientRequest>()
  #agent: Agent | undefined

  constructor(options: HttpSenderOptions) {
    this.#options = options
  }

  /** Rejects with Node's error, a timeout error, or the reason of the signal. */
  async send({ method, url, headers, body, signal, idleTimeoutMs }: HttpStoreRequest): Promise<HttpResponse> {
    signal?.throwIfAborted()
    const { Agent, request } = url.startsWith('https:') ? await import('node:https') : process.getBuiltinModule('node:http')
    const { connections, caCertificate, socketPath } = this.#options
    this.#agent ??=
      this.#options.agent ??
      new Agent({
        ...{ keepAlive: true, maxSockets: connections, timeout: 30_000 },
        ...(caCertificate && { ca: caCertificate }),
        ...(socketPath !== undefined && { socketPath }),
      })
    const agent = this.#agent
    return await new Promise<HttpResponse>((resolve, reject) => {
      // Without content-length Node would send the body in chunks, but the stores need its size first.
      const all = { ...headers, 'content-length': String(body?.byteLength ?? 0) }
      const sent = request(url, { method, agent, headers: all, timeout: idleTimeoutMs, ...(signal && { signal }) })
      this.#active.add(sent)
      sent.on('close', () => this.#active.delete(sent))
      sent.on('timeout', () => sent.destroy(new Error(`no data received for ${idleTimeoutMs} ms`)))
      sent.on('error', error => reject(signal?.aborted ? signal.reason : error))
      sent.on('response', response => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }))
      })
      sent.end(body)
    })
  }

  /** Closes its own connections: active requests reject. */
  destroy(): void {
    // Including requests that wait for a connection: the agent would open new ones for them.
    for (const request of this.#active) request.destroy(new Error('the connection was closed by the client'))
    if (this.#options.agent === undefined) this.#agent?.destroy()
  }
}
