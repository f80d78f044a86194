import { readFile } from 'node:fs/promises'
import type { Resource } from '../object/index.ts'
import { Authenticator } from './authenticator.ts'
import { type Clock, systemClock } from './clock.ts'
import { type ClusterAccess, parseServer } from './cluster-access.ts'
import { HttpClient } from './http-client.ts'
import { HttpTransport } from './http-transport.ts'
import { type LocalServer, LocalTransport } from './local-transport.ts'
import { type RateLimitOptions, RequestRateLimiter } from './request-rate-limiter.ts'
import { type AccessOptions, resolveClusterAccess } from './resolve-cluster-access.ts'
import type { ResourceClient } from './resource-client.ts'
import type { ResourceClientOptions } from './resource-options.ts'
import type { Query } from './resource-path.ts'
import { latin1OfUtf8 } from './serialize-request.ts'
import type { TransportResponse } from './transport.ts'

export type ClientOptions = AccessOptions & {
  /** Another server that accepts the same credentials, such as an extension API server. Default: the server of the cluster. */
  endpoint?: { server: string; caCertificate?: string | undefined } | undefined
  /** Default `oarlock`. */
  userAgent?: string | undefined
  /** The manager that writes are attributed to in managedFields; default `oarlock`. */
  fieldManager?: string | undefined
  /** Timeout for the response head, and for each pause within the body; default 30,000. */
  requestTimeoutMs?: number | undefined
  /** Client-side rate limit; default: none, only the server's 429 applies. A watch counts as one request. */
  rateLimit?: RateLimitOptions | undefined
  /**
   * How many connections requests for single objects use before they share one; default 16. Go's servers process the
   * requests of one connection one after the other, so fewer connections are slower there. The embedded server processes
   * them concurrently: 1 or 2 are cheapest, since more requests leave in one write.
   */
  connections?: number | undefined
  /** The result of `connect()` of a server in this process: requests to `cluster` reach it without a socket. Default: the network. */
  local?: LocalServer | undefined
  /** For tests: the clock and randomness of retries. */
  clock?: Clock | undefined
  random?: (() => number) | undefined
}

export type RequestOptions = {
  method: string
  /** Starts with a slash; may include a query. */
  path: string
  query?: Query | undefined
  /** Text and bytes are sent unchanged, everything else as JSON. */
  body?: unknown | undefined
  /** Names in lower case. */
  headers?: Record<string, string | string[]> | undefined
  signal?: AbortSignal | undefined
  /**
   * Called immediately before each attempt is sent, after all waiting: for a rate limit, a connection or a retry. If it throws, nothing is sent
   * and the request rejects with what it threw. For writes of a process that may lose the right to write.
   */
  beforeSend?: (() => void) | undefined
  /**
   * If it aborts while a short request awaits its response, the connection is reset, so that the system does not send later what has not left yet;
   * other requests on that connection fail and are retried where that is safe. Pass it in `signal` too, which rejects the request. Other requests,
   * and those through a proxy, have a connection of their own, which `signal` closes: what the system has accepted may still be sent.
   */
  resetSignal?: AbortSignal | undefined
  timeoutMs?: number | undefined
  /** Whether the request may be retried after its connection broke; by default as HTTP defines for the method. */
  idempotent?: boolean | undefined
  /**
   * The response is small and comes soon, as for one object: the request may share a connection with others, which is much
   * cheaper for many of them. Ignored with `timeoutMs`, since such a request must not wait for others. Default false.
   */
  isShort?: boolean | undefined
}

export type Response = { status: number; headers: TransportResponse['headers']; text(): Promise<string>; json(): Promise<unknown> }

export type StreamResponse = { status: number; headers: TransportResponse['headers']; body: AsyncIterable<Uint8Array> }

/** Receives each finished attempt, for metrics. `code` is the HTTP status, or `<error>` without a response. */
export type RequestObserver = (request: { method: string; code: string; host: string }) => void

/** A connection to one Kubernetes API. Safe to share: create one per process and close it at the end. */
export interface Client {
  /** The server's address, without credentials. */
  readonly server: string
  /** Namespace of requests that have none: that of the context or the Pod, or `default`. */
  readonly defaultNamespace: string
  /** The manager that writes are attributed to. */
  readonly fieldManager: string
  /** A typed client for one kind. */
  resource<Body>(resource: Resource<Body>, options?: ResourceClientOptions): ResourceClient<Body>
  /**
   * Finds a kind by discovery. Results are cached; an unknown kind is looked up again.
   * @throws {StatusError} NotFound if the server does not have it.
   */
  discover(apiVersion: string, kind: string): Promise<Resource>
  /**
   * Sends any request. Retries 429 and 503 after their Retry-After, and broken connections where that is safe.
   * @throws {StatusError} for a response of 300 and above. @throws {ConnectionError} without a response.
   */
  request(options: RequestOptions): Promise<Response>
  /** Like {@link Client.request} for a long-lived response: logs, watches. `idleTimeoutMs` bounds each pause; 0 is no bound. */
  stream(options: RequestOptions & { idleTimeoutMs?: number }): Promise<StreamResponse>
  /** Calls `observer` after every attempt; returns a function that removes it. */
  observeRequests(observer: RequestObserver): () => void
  /** Closes every connection, including running requests and watches. */
  close(): Promise<void>
}

/**
 * Connects to the cluster in `options`, or by default to the one that kubectl would use: KUBECONFIG, the Pod's service
 * account, `~/.kube/config`. Sends nothing yet.
 * @throws {TypeError} naming the file and field if the configuration is incomplete.
 */
export async function createClient(options: ClientOptions = {}): Promise<Client> {
  const { endpoint } = options
  const cluster = await resolveClusterAccess(options)
  const access = endpoint ? onEndpoint(cluster, endpoint) : cluster
  const { connections = 16 } = options
  if (!Number.isInteger(connections) || connections < 1) {
    throw new RangeError(`connections must be an integer >= 1, got ${connections}`)
  }
  const transport = options.local ? new LocalTransport(options.local) : new HttpTransport(access, connections)
  const authenticator = new Authenticator(access)
  return new HttpClient(transport, authenticator, {
    server: access.server,
    defaultNamespace: access.defaultNamespace,
    fieldManager: options.fieldManager ?? 'oarlock',
    requestTimeoutMs: options.requestTimeoutMs ?? 30_000,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
    rateLimiter: options.rateLimit && new RequestRateLimiter(options.rateLimit, options.clock ?? systemClock),
    headers: {
      accept: 'application/json',
      'user-agent': options.userAgent ?? 'oarlock',
      // Names in UTF-8, as client-go sends them.
      ...(access.impersonate?.user && { 'impersonate-user': latin1OfUtf8(access.impersonate.user) }),
      ...(access.impersonate?.uid && { 'impersonate-uid': latin1OfUtf8(access.impersonate.uid) }),
      ...(access.impersonate?.groups.length && { 'impersonate-group': access.impersonate.groups.map(latin1OfUtf8) }),
    },
  })
}

/** The certificate authority of the cluster that {@link createClient} connects to, as PEM; undefined for those of the system. */
export async function clusterCaCertificate(options: AccessOptions = {}): Promise<string | undefined> {
  const { ca } = await resolveClusterAccess(options)
  return ca?.kind === 'file' ? await readFile(ca.path, 'utf8') : ca?.text
}

/** Whether the user of {@link createClient} is identified by a client certificate alone, which only the API server itself can verify. */
export async function hasOnlyClientCertificate(options: AccessOptions = {}): Promise<boolean> {
  const { credentials, clientCertificate } = await resolveClusterAccess(options)
  return credentials.kind === 'none' && clientCertificate !== undefined
}

/** The same credentials for another server. The settings of the connection to the cluster, such as its CA, do not apply to it. */
function onEndpoint(cluster: ClusterAccess, { server, caCertificate }: NonNullable<ClientOptions['endpoint']>): ClusterAccess {
  const { ca: _ca, tlsServerName: _name, proxyUrl: _proxy, ...access } = cluster
  return {
    ...access,
    server: parseServer(server, 'the server of the endpoint'),
    insecureSkipTlsVerify: false,
    ...(caCertificate !== undefined && { ca: { kind: 'text', text: caCertificate } }),
  }
}
