import { type Resource, StatusError } from '../object/index.ts'
import { type Authentication, Authenticator } from './authenticator.ts'
import { type Clock, systemClock } from './clock.ts'
import { ConnectionError, isReset } from './connection-error.ts'
import { type AttemptFailure, decideRetry, parseRetryAfter } from './decide-retry.ts'
import { Discovery } from './discovery.ts'
import { type AccessOptions, findAccess } from './find-access.ts'
import { type LocalServer, LocalTransport } from './local-transport.ts'
import { errorOf, parseAnswer, type RawResponse } from './read-response.ts'
import { type PaceOptions, RequestRateLimit } from './request-rate-limit.ts'
import { ResourceClient } from './resource-client.ts'
import type { HandleOptions } from './resource-options.ts'
import { type Query, withQuery } from './resource-path.ts'
import { type Exchanger, type Outgoing, type Streaming, Transport } from './transport.ts'

export type ClientOptions = AccessOptions & {
  /** Default `oarlock`. */
  userAgent?: string | undefined
  /** Who a write is attributed to in managedFields; default `oarlock`. */
  fieldManager?: string | undefined
  /** How long to wait for an answer to begin, and for each pause inside it; default 30,000. */
  requestTimeoutMs?: number | undefined
  /** Holds requests back on this side; default: none, the server's own 429 is obeyed. Watches count when they begin. */
  pace?: PaceOptions | undefined
  /**
   * How many connections requests for single objects spread over before several wait on one; default 16. Go's servers
   * answer the requests of one connection one after the other, so fewer are slower there; the embedded server works on
   * them at the same time, and 1 or 2 are cheapest, as more requests leave together.
   */
  connections?: number | undefined
  /**
   * The server of `cluster` is in this process: its `connect()`. Requests go there without a socket. Default: the network.
   */
  local?: LocalServer | undefined
  /** For tests: time and chance of the retries. */
  clock?: Clock | undefined
  random?: (() => number) | undefined
}

export type RequestOptions = {
  method: string
  /** Starts with a slash; the query may be part of it. */
  path: string
  query?: Query | undefined
  /** Sent as it is if text or bytes, else as JSON. */
  body?: unknown | undefined
  /** Names in lower case. */
  headers?: Record<string, string> | undefined
  signal?: AbortSignal | undefined
  timeoutMs?: number | undefined
  /** Whether the request may be sent again after the connection broke; by default what the method promises. */
  idempotent?: boolean | undefined
  /**
   * The answer comes soon and is small, as for one object: it may wait behind others on one connection, which makes many
   * of them much cheaper. Not used with `timeoutMs`, since such a request must not wait for others. Default false.
   */
  isShort?: boolean | undefined
}

export type Response = { status: number; headers: RawResponse['headers']; text(): Promise<string>; json(): Promise<unknown> }

export type StreamResponse = { status: number; headers: RawResponse['headers']; body: AsyncIterable<Uint8Array> }

/** What is told about each finished attempt, for metrics. `code` is the HTTP status, or `<error>` when there was none. */
export type RequestObserver = (request: { method: string; code: string; host: string }) => void

/** A connection to one Kubernetes API. Safe to share; make one per process and close it at the end. */
export interface Client {
  /** The server's address, without credentials. */
  readonly server: string
  /** Namespace of requests that name none: the context's, the Pod's, or `default`. */
  readonly defaultNamespace: string
  /** Who writes are attributed to. */
  readonly fieldManager: string
  /** A typed handle for one kind. */
  resource<Body>(resource: Resource<Body>, options?: HandleOptions): ResourceClient<Body>
  /**
   * Finds a kind by name as the server describes it; cached, and asked again for an unknown one.
   * @throws {StatusError} NotFound if the server does not have it.
   */
  discover(apiVersion: string, kind: string): Promise<Resource>
  /**
   * Sends any request. 429 and 503 with Retry-After are obeyed, broken connections retried where that is safe.
   * @throws {StatusError} for an answer of 300 and above. @throws {ConnectionError} when no answer came.
   */
  request(options: RequestOptions): Promise<Response>
  /** Like {@link Client.request} for an answer that goes on: logs, watches. `idleTimeoutMs` bounds each pause; 0 is no bound. */
  stream(options: RequestOptions & { idleTimeoutMs?: number }): Promise<StreamResponse>
  /** Calls `observer` after every attempt; returns how to stop that. */
  observeRequests(observer: RequestObserver): () => void
  /** Cuts every connection, running requests and watches too. */
  close(): Promise<void>
}

/**
 * Connects to the cluster that `options` name, else to the one kubectl would use: KUBECONFIG, the Pod's service account,
 * `~/.kube/config`. Nothing is sent yet.
 * @throws {TypeError} naming the file and field if the configuration is incomplete.
 */
export async function createClient(options: ClientOptions = {}): Promise<Client> {
  const access = await findAccess(options)
  const { connections = 16 } = options
  if (!Number.isInteger(connections) || connections < 1) {
    throw new RangeError(`connections must be a whole number >= 1, got ${connections}`)
  }
  const transport = options.local ? new LocalTransport(options.local) : new Transport(access, connections)
  const authenticator = new Authenticator(access)
  return new HttpClient(transport, authenticator, {
    server: access.server,
    defaultNamespace: access.defaultNamespace,
    fieldManager: options.fieldManager ?? 'oarlock',
    requestTimeoutMs: options.requestTimeoutMs ?? 30_000,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
    pace: options.pace && new RequestRateLimit(options.pace, options.clock ?? systemClock),
    headers: {
      accept: 'application/json',
      'user-agent': options.userAgent ?? 'oarlock',
      ...(access.impersonate?.user && { 'impersonate-user': access.impersonate.user }),
      ...(access.impersonate?.uid && { 'impersonate-uid': access.impersonate.uid }),
      ...(access.impersonate?.groups.length && { 'impersonate-group': access.impersonate.groups }),
    },
  })
}

type Settings = {
  server: string
  defaultNamespace: string
  fieldManager: string
  requestTimeoutMs: number
  clock: Clock
  random: () => number
  pace: RequestRateLimit | undefined
  headers: Record<string, string | string[]>
}

type Attempt<T> = (outgoing: Outgoing, certificate: Authentication['certificate']) => Promise<T>

class HttpClient implements Client {
  readonly server: string
  readonly defaultNamespace: string
  readonly fieldManager: string
  readonly #host: string
  readonly #transport: Exchanger
  readonly #authenticator: Authenticator
  readonly #settings: Settings
  readonly #discovery: Discovery
  readonly #observers = new Set<RequestObserver>()
  readonly #exchange: Attempt<RawResponse>

  constructor(transport: Exchanger, authenticator: Authenticator, settings: Settings) {
    this.server = settings.server
    this.defaultNamespace = settings.defaultNamespace
    this.fieldManager = settings.fieldManager
    this.#host = new URL(settings.server).host
    this.#transport = transport
    this.#authenticator = authenticator
    this.#settings = settings
    this.#exchange = (outgoing, certificate) => transport.exchange(outgoing, certificate)
    this.#discovery = new Discovery(async path => (await this.request({ method: 'GET', path })).json())
  }

  resource<Body>(resource: Resource<Body>, options?: HandleOptions): ResourceClient<Body> {
    return new ResourceClient(this, resource, options)
  }

  discover(apiVersion: string, kind: string): Promise<Resource> {
    return this.#discovery.find(apiVersion, kind)
  }

  async request(options: RequestOptions): Promise<Response> {
    const answer = await this.#send(options, this.#exchange)
    if (answer.status >= 300) throw this.#explained(errorOf(answer, this.#asked(options)))
    return new HttpResponse(answer, () => this.#asked(options))
  }

  async stream(options: RequestOptions & { idleTimeoutMs?: number }): Promise<StreamResponse> {
    const answer = await this.#send(options, (outgoing, certificate) =>
      this.#transport.stream({ ...outgoing, idleTimeoutMs: options.idleTimeoutMs ?? outgoing.timeoutMs }, certificate),
    )
    if (answer.status >= 300) throw this.#explained(errorOf({ ...answer, body: await textOf(answer.body) }, this.#asked(options)))
    return answer
  }

  observeRequests(observer: RequestObserver): () => void {
    this.#observers.add(observer)
    return () => this.#observers.delete(observer)
  }

  async close(): Promise<void> {
    await this.#transport.close()
  }

  /** "Unauthorized" alone helps nobody: only this side knows where its credentials are from. */
  #explained(error: StatusError): StatusError {
    if (error.code !== 401) return error
    const { message, details } = error
    return new StatusError('Unauthorized', `${message}: ${this.#authenticator.adviceAfterRefusal()}`, { code: 401, details })
  }

  #asked({ method, path }: RequestOptions) {
    return { method, url: this.server + path.split('?')[0] }
  }

  /** Sends until there is an answer to keep: refreshes credentials once after a 401, obeys {@link decideRetry}. */
  async #send<T extends Streaming | RawResponse>(options: RequestOptions, attempt: Attempt<T>): Promise<T> {
    const { method, path, query, body, signal, timeoutMs = this.#settings.requestTimeoutMs } = options
    if (!path.startsWith('/')) throw new TypeError(`path ${JSON.stringify(path)} must start with a slash`)
    const isShort = options.isShort === true && options.timeoutMs === undefined
    const isRaw = body === undefined || typeof body === 'string' || body instanceof Uint8Array
    const headers: Record<string, string | string[]> = {
      ...this.#settings.headers,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...options.headers,
    }
    const outgoing = {
      method,
      path: withQuery(path, query),
      headers,
      body: isRaw ? body : JSON.stringify(body),
      timeoutMs,
      signal,
      isShort,
    }
    const idempotent = options.idempotent ?? (method !== 'POST' && method !== 'PATCH')
    let hasRefreshed = false
    for (let retries = 0; ; retries++) {
      signal?.throwIfAborted()
      const turn = this.#settings.pace?.wait(signal)
      if (turn) {
        await turn
        signal?.throwIfAborted()
      }
      const fresh = this.#authenticator.get()
      const authentication = fresh instanceof Promise ? await fresh : fresh
      if (authentication.authorization) headers.authorization = authentication.authorization
      let failure: AttemptFailure
      let sent: T | undefined
      let error: unknown
      try {
        sent = await attempt(outgoing, authentication.certificate)
        this.#observe(method, String(sent.status))
        const { status } = sent
        if (status === 401 && !hasRefreshed && this.#authenticator.expire(authentication)) {
          hasRefreshed = true
          await discard(sent)
          continue
        }
        if (status !== 429 && status !== 503) return sent
        failure = { kind: 'answer', status, retryAfterMs: parseRetryAfter(text(sent.headers['retry-after']), Date.now()) }
      } catch (cause) {
        if (signal?.aborted) throw signal.reason
        this.#observe(method, '<error>')
        const wrapped = wrap(cause, this.server, `${method} ${path.split('?')[0]}`)
        error = wrapped
        failure = { kind: wrapped instanceof ConnectionError && isReset(wrapped.code) ? 'reset' : 'other' }
      }
      const verdict = decideRetry(failure, { idempotent, retries }, this.#settings.random())
      if (verdict.kind === 'give-up') {
        if (sent) return sent
        throw error
      }
      if (sent) await discard(sent)
      await this.#settings.clock.sleep(verdict.delayMs, signal)
    }
  }

  #observe(method: string, code: string): void {
    for (const observer of this.#observers) observer({ method, code, host: this.#host })
  }
}

/** Reads headers and body only when asked: for most answers one of them is not needed. */
class HttpResponse implements Response {
  readonly #answer: RawResponse
  readonly #asked: () => { method: string; url: string }

  constructor(answer: RawResponse, asked: () => { method: string; url: string }) {
    this.#answer = answer
    this.#asked = asked
  }

  get status(): number {
    return this.#answer.status
  }

  get headers(): RawResponse['headers'] {
    return this.#answer.headers
  }

  async text(): Promise<string> {
    return this.#answer.body
  }

  async json(): Promise<unknown> {
    return parseAnswer(this.#answer, this.#asked)
  }
}

/** Errors with a code come from a socket; the others (a missing CA file, a bug) already say what is wrong. */
function wrap(error: unknown, server: string, request: string): unknown {
  if (error instanceof TypeError || !(error instanceof Error)) return error
  const hasCode = typeof (error as NodeJS.ErrnoException).code === 'string' || error instanceof AggregateError
  return hasCode ? new ConnectionError(server, request, error) : error
}

/** Frees the connection of an answer nobody reads. */
async function discard(answer: Streaming | RawResponse): Promise<void> {
  if (typeof answer.body === 'string') return
  await textOf(answer.body)
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.length
    if (size > 1_048_576) break
  }
  return Buffer.concat(chunks).toString('utf8')
}

const text = (header: string | string[] | undefined) => (Array.isArray(header) ? header[0] : header)
