import type { Agent, ClientRequest, IncomingHttpHeaders } from 'node:http'

export type HttpRequest = {
  method: string
  url: string
  headers: Record<string, string>
  body?: Uint8Array | undefined
  signal?: AbortSignal | undefined
  /** Bounds every silence: before the connection, before the answer and inside it. */
  idleTimeoutMs: number
}

export type HttpResponse = { status: number; headers: IncomingHttpHeaders; body: Buffer }

export type HttpSenderOptions = {
  connections: number
  /** PEM of the CA that signed the server's certificate. Default: the system's. */
  caCertificate?: string | undefined
  /** Connections shared with others: `connections` and `caCertificate` are theirs, and {@link HttpSender.destroy} leaves them open. */
  agent?: Agent | undefined
}

/**
 * Requests to one server over kept connections. `node:http` and nothing else: a worker starts for each Run, and an HTTP
 * library would be a third of its memory and of its start.
 */
export class HttpSender {
  readonly #options: HttpSenderOptions
  readonly #active = new Set<ClientRequest>()
  #agent: Agent | undefined

  constructor(options: HttpSenderOptions) {
    this.#options = options
  }

  /** Rejects with Node's error, one that says what was silent, or the reason of the signal. */
  async send({ method, url, headers, body, signal, idleTimeoutMs }: HttpRequest): Promise<HttpResponse> {
    signal?.throwIfAborted()
    const { Agent, request } = url.startsWith('https:') ? await import('node:https') : process.getBuiltinModule('node:http')
    const { connections, caCertificate } = this.#options
    this.#agent ??=
      this.#options.agent ??
      new Agent({ keepAlive: true, maxSockets: connections, timeout: 30_000, ...(caCertificate && { ca: caCertificate }) })
    const agent = this.#agent
    return await new Promise<HttpResponse>((resolve, reject) => {
      // Without it Node sends the body of a PUT in chunks, and stores want to know the size first.
      const all = { ...headers, 'content-length': String(body?.byteLength ?? 0) }
      const sent = request(url, { method, agent, headers: all, timeout: idleTimeoutMs, ...(signal && { signal }) })
      this.#active.add(sent)
      sent.on('close', () => this.#active.delete(sent))
      sent.on('timeout', () => sent.destroy(new Error(`nothing came for ${idleTimeoutMs} ms`)))
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

  /** Cuts every connection of its own: requests under way reject. */
  destroy(): void {
    // Those that wait for a connection too: the agent would open new ones for them.
    for (const request of this.#active) request.destroy(new Error('the connection was closed on this side'))
    if (this.#options.agent === undefined) this.#agent?.destroy()
  }
}
