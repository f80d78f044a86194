import { type Resource, StatusError } from '../object/index.ts'
import { parseServerAddress } from '../util/server-address.ts'
import type { Authentication, Authenticator } from './authenticator.ts'
import type { Client, RequestObserver, RequestOptions, Response, StreamResponse } from './client.ts'
import type { Clock } from './clock.ts'
import { ConnectionError, isReset } from './connection-error.ts'
import { type AttemptFailure, decideRetry, parseRetryAfter } from './decide-retry.ts'
import { parseJsonBody, type RequestTarget, toStatusError } from './decode-response.ts'
import { Discovery } from './discovery.ts'
import type { RequestRateLimiter } from './request-rate-limiter.ts'
import { ResourceClient } from './resource-client.ts'
import type { ResourceClientOptions } from './resource-options.ts'
import { withQuery } from './resource-path.ts'
import type { Transport, TransportRequest, TransportResponse, TransportStreamResponse } from './transport.ts'

export type HttpClientSettings = {
  server: string
  defaultNamespace: string
  fieldManager: string
  requestTimeoutMs: number
  clock: Clock
  random: () => number
  rateLimiter: RequestRateLimiter | undefined
  headers: Record<string, string | string[]>
}

type SendAttempt<T> = (request: TransportRequest, certificate: Authentication['certificate']) => Promise<T>

/** The {@link Client} over a transport: adds credentials, retries and Kubernetes' errors. */
export class HttpClient implements Client {
  readonly server: string
  readonly defaultNamespace: string
  readonly fieldManager: string
  readonly #host: string
  readonly #transport: Transport
  readonly #authenticator: Authenticator
  readonly #settings: HttpClientSettings
  readonly #discovery: Discovery
  readonly #observers = new Set<RequestObserver>()
  readonly #sendRequest: SendAttempt<TransportResponse>

  constructor(transport: Transport, authenticator: Authenticator, settings: HttpClientSettings) {
    this.server = settings.server
    this.defaultNamespace = settings.defaultNamespace
    this.fieldManager = settings.fieldManager
    this.#host = new URL(parseServerAddress(settings.server).baseUrl).host
    this.#transport = transport
    this.#authenticator = authenticator
    this.#settings = settings
    this.#sendRequest = (request, certificate) => transport.request(request, certificate)
    this.#discovery = new Discovery(async path => (await this.request({ method: 'GET', path })).json())
  }

  resource<Body>(resource: Resource<Body>, options?: ResourceClientOptions): ResourceClient<Body> {
    return new ResourceClient(this, resource, options)
  }

  discover(apiVersion: string, kind: string): Promise<Resource> {
    return this.#discovery.find(apiVersion, kind)
  }

  async request(options: RequestOptions): Promise<Response> {
    const response = await this.#send(options, this.#sendRequest)
    if (response.status >= 300) throw this.#withUnauthorizedHint(toStatusError(response, this.#target(options)))
    return new HttpResponse(response, () => this.#target(options))
  }

  async stream(options: RequestOptions & { idleTimeoutMs?: number }): Promise<StreamResponse> {
    const response = await this.#send(options, (request, certificate) =>
      this.#transport.stream({ ...request, idleTimeoutMs: options.idleTimeoutMs ?? request.timeoutMs }, certificate),
    )
    if (response.status >= 300) {
      throw this.#withUnauthorizedHint(toStatusError({ ...response, body: await readText(response.body) }, this.#target(options)))
    }
    return response
  }

  observeRequests(observer: RequestObserver): () => void {
    this.#observers.add(observer)
    return () => this.#observers.delete(observer)
  }

  async close(): Promise<void> {
    await this.#transport.close()
  }

  /** "Unauthorized" alone does not help: only the client knows where its credentials are from. */
  #withUnauthorizedHint(error: StatusError): StatusError {
    if (error.code !== 401) return error
    const { message, details } = error
    return new StatusError('Unauthorized', `${message}: ${this.#authenticator.unauthorizedHint()}`, { code: 401, details })
  }

  #target({ method, path }: RequestOptions): RequestTarget {
    return { method, url: this.server + path.split('?')[0] }
  }

  /** Sends until there is a response to return: refreshes credentials once after a 401, and retries as {@link decideRetry} decides. */
  async #send<T extends TransportStreamResponse | TransportResponse>(options: RequestOptions, attempt: SendAttempt<T>): Promise<T> {
    const { method, path, query, body, signal, beforeSend, resetSignal, timeoutMs = this.#settings.requestTimeoutMs } = options
    if (!path.startsWith('/')) throw new TypeError(`path ${JSON.stringify(path)} must start with a slash`)
    const isShort = options.isShort === true && options.timeoutMs === undefined
    const isRaw = body === undefined || typeof body === 'string' || body instanceof Uint8Array
    const headers: Record<string, string | string[]> = {
      ...this.#settings.headers,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...options.headers,
    }
    const request = {
      method,
      path: withQuery(path, query),
      headers,
      body: isRaw ? body : JSON.stringify(body),
      timeoutMs,
      signal,
      beforeSend,
      resetSignal,
      isShort,
    }
    const idempotent = options.idempotent ?? (method !== 'POST' && method !== 'PATCH')
    let hasRefreshed = false
    for (let retries = 0; ; retries++) {
      signal?.throwIfAborted()
      const delay = this.#settings.rateLimiter?.wait(signal)
      if (delay) {
        await delay
        signal?.throwIfAborted()
      }
      const current = this.#authenticator.get()
      const authentication = current instanceof Promise ? await current : current
      if (authentication.authorization) headers.authorization = authentication.authorization
      let failure: AttemptFailure
      let response: T | undefined
      let error: unknown
      try {
        response = await attempt(request, authentication.certificate)
        this.#observe(method, String(response.status))
        const { status } = response
        if (status === 401 && !hasRefreshed && this.#authenticator.invalidate(authentication)) {
          hasRefreshed = true
          await discard(response)
          continue
        }
        if (status !== 429 && status !== 503) return response
        failure = { kind: 'response', status, retryAfterMs: parseRetryAfter(firstValue(response.headers['retry-after']), Date.now()) }
      } catch (cause) {
        if (signal?.aborted) throw signal.reason
        this.#observe(method, '<error>')
        const wrapped = wrap(cause, this.server, `${method} ${path.split('?')[0]}`)
        error = wrapped
        failure = { kind: wrapped instanceof ConnectionError && isReset(wrapped.code) ? 'reset' : 'other' }
      }
      const decision = decideRetry(failure, { idempotent, retries }, this.#settings.random())
      if (decision.kind === 'give-up') {
        if (response) return response
        throw error
      }
      if (response) await discard(response)
      await this.#settings.clock.sleep(decision.delayMs, signal)
    }
  }

  #observe(method: string, code: string): void {
    for (const observer of this.#observers) observer({ method, code, host: this.#host })
  }
}

/** Accesses headers and body on demand: most callers need only one of them. */
class HttpResponse implements Response {
  readonly #response: TransportResponse
  readonly #target: () => RequestTarget

  constructor(response: TransportResponse, target: () => RequestTarget) {
    this.#response = response
    this.#target = target
  }

  get status(): number {
    return this.#response.status
  }

  get headers(): TransportResponse['headers'] {
    return this.#response.headers
  }

  async text(): Promise<string> {
    return this.#response.body
  }

  async json(): Promise<unknown> {
    return parseJsonBody(this.#response, this.#target)
  }
}

/** Errors with a code come from a socket; the messages of others (a missing CA file, a bug) need no context. */
function wrap(error: unknown, server: string, request: string): unknown {
  if (error instanceof TypeError || !(error instanceof Error)) return error
  const hasCode = typeof (error as NodeJS.ErrnoException).code === 'string' || error instanceof AggregateError
  return hasCode ? new ConnectionError(server, request, error) : error
}

/** Frees the connection of a response that is not read. */
async function discard(response: TransportStreamResponse | TransportResponse): Promise<void> {
  if (typeof response.body === 'string') return
  await readText(response.body)
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.length
    if (size > 1_048_576) break
  }
  return Buffer.concat(chunks).toString('utf8')
}

const firstValue = (header: string | string[] | undefined) => (Array.isArray(header) ? header[0] : header)
