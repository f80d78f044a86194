import type { Agent, ClientRequest, request as httpRequest, OutgoingHttpHeaders } from 'node:http'
import { parseServerAddress, socketAgentOptions } from '../util/server-address.ts'
import type { Authentication } from './authenticator.ts'
import type { ClusterAccess } from './cluster-access.ts'
import { ClientClosedError, withCode } from './connection-error.ts'
import { ConnectionPool } from './connection-pool.ts'
import { abortError, onAbort } from './on-abort.ts'
import { restoreBundledRootCertificates } from './root-certificates.ts'
import { StreamBody } from './stream-body.ts'
import { loadTlsOptions, type TlsOptions } from './tls-options.ts'
import {
  maxResponseBytes,
  responseTooLarge,
  type Transport,
  type TransportRequest,
  type TransportResponse,
  type TransportStreamResponse,
} from './transport.ts'

type Agents = { send: typeof httpRequest; requests: Agent; streams: Agent }

/** The connections of one client certificate. */
type Connections = {
  tls: TlsOptions
  /** Created on first use, because they load node:http: a worker registers without it, and loads it while it waits for the response. */
  agents: Agents | undefined
  /** Undefined behind a proxy, which may not support pipelining. */
  pipelined: ConnectionPool | undefined
  certificate: Authentication['certificate']
}

/**
 * How many requests run at the same time; further ones wait. A busy controller keeps some tens in flight, and a server
 * responds in milliseconds, so this is far above what one process can use and far below what loads a server.
 */
const maxRequestConnections = 64
const maxPipelined = 64
const connectTimeoutMs = 10_000
/** Below the 90 s and more of common API servers and load balancers; a lower value in the server's Keep-Alive header wins. */
const keepAliveMs = 45_000
const pauseAboveBytes = 1_048_576

/**
 * The connections to one server: HTTP/1.1 with keep-alive, in separate pools for requests and for long streams, so that
 * watches never delay a write. Knows nothing of Kubernetes. Built on `node:http`, which every process has loaded
 * already: an additional client library cost 20 MB and 80 ms at each start.
 */
export class HttpTransport implements Transport {
  readonly #access: ClusterAccess
  readonly #origin: URL
  readonly #socketPath: string | undefined
  readonly #pathPrefix: string
  readonly #preferredConnections: number
  #connections: Connections | undefined
  #opening: Promise<Connections> | undefined
  /** For `close`: an agent that is destroyed closes its sockets, and then opens new ones for the requests that wait. */
  readonly #active = new Set<ClientRequest>()
  /** Why it is closed; undefined: it is not. */
  #closed: Error | undefined

  /** @param preferredConnections how many connections short requests open before they share one. */
  constructor(access: ClusterAccess, preferredConnections: number) {
    this.#access = access
    this.#preferredConnections = preferredConnections
    const { baseUrl, socketPath } = parseServerAddress(access.server)
    const url = new URL(baseUrl)
    this.#socketPath = socketPath
    this.#origin = new URL(url.origin)
    this.#pathPrefix = url.pathname.replace(/\/$/, '')
  }

  request(request: TransportRequest, certificate: Authentication['certificate']): Promise<TransportResponse> {
    const opening = this.#open(certificate)
    return opening instanceof Promise ? opening.then(connections => this.#request(connections, request)) : this.#request(opening, request)
  }

  #request(connections: Connections, request: TransportRequest): Promise<TransportResponse> {
    if (connections.pipelined && request.isShort && isTextOrUndefined(request.body)) {
      return connections.pipelined.request(this.#pathPrefix ? { ...request, path: this.#pathPrefix + request.path } : request)
    }
    return new Promise<TransportResponse>((resolve, reject) => {
      const clientRequest = this.#send(this.#agentsOf(connections), 'requests', request, request.timeoutMs, reject)
      clientRequest?.on('response', response => {
        let size = 0
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => {
          size += chunk.length
          if (size > maxResponseBytes) clientRequest.destroy(responseTooLarge(maxResponseBytes))
          else chunks.push(chunk)
        })
        response.on('end', () => {
          const body = chunks.length === 1 ? (chunks[0] as Buffer).toString('utf8') : Buffer.concat(chunks).toString('utf8')
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body })
        })
        response.on('error', reject)
      })
    })
  }

  async stream(
    request: TransportRequest & { idleTimeoutMs: number },
    certificate: Authentication['certificate'],
  ): Promise<TransportStreamResponse> {
    const connections = await this.#open(certificate)
    return new Promise<TransportStreamResponse>((resolve, reject) => {
      const clientRequest = this.#send(this.#agentsOf(connections), 'streams', request, request.idleTimeoutMs, reject)
      clientRequest?.on('response', response => {
        let bufferedBytes = 0
        const body = new StreamBody({
          drained: () => {
            bufferedBytes = 0
            if (response.isPaused()) response.resume()
          },
          cancel: () => clientRequest.destroy(),
        })
        // Stop reading from the socket while the reader lags behind.
        response.on('data', (chunk: Buffer) => {
          if (body.isEnded) return
          bufferedBytes += chunk.length
          if (bufferedBytes > pauseAboveBytes) response.pause()
          body.push(chunk)
        })
        response.on('end', () => body.end())
        // The request's error is the more specific one, and is emitted first.
        for (const source of [clientRequest, response]) {
          source.on('error', error => {
            if (request.signal?.aborted) body.end()
            else body.fail(error)
          })
        }
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body })
      })
    })
  }

  /** @param reason the error of requests in progress. */
  async close(reason: Error = new ClientClosedError()): Promise<void> {
    this.#closed = reason
    const connections = this.#connections ?? (await this.#opening?.catch(() => undefined))
    connections?.pipelined?.destroy(reason)
    for (const clientRequest of this.#active) clientRequest.destroy(reason)
    connections?.agents?.requests.destroy()
    connections?.agents?.streams.destroy()
  }

  /** Writes a request. `fail` receives the error that ends it before its response. `pauseMs` bounds each pause within the response; 0 is no bound. */
  #send(
    agents: Agents,
    pool: 'requests' | 'streams',
    { method, path, headers, body, timeoutMs, signal, beforeSend }: TransportRequest,
    pauseMs: number,
    fail: (error: unknown) => void,
  ): ClientRequest | undefined {
    if (signal?.aborted) {
      fail(signal.reason)
      return undefined
    }
    const { protocol, hostname, port } = this.#origin
    // With a text Node would encode the headers, each of whose characters is a byte, as UTF-8 too.
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const allHeaders: OutgoingHttpHeaders = { ...headers }
    if (bytes !== undefined || method === 'POST' || method === 'PUT' || method === 'PATCH') {
      allHeaders['content-length'] = bytes?.length ?? 0
    }
    const clientRequest = agents.send({
      protocol,
      hostname: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
      port: port || undefined,
      agent: agents[pool],
      method,
      path: this.#pathPrefix + path,
      headers: allHeaders,
      timeout: timeoutMs,
    })
    this.#active.add(clientRequest)
    let hasResponse = false
    const release =
      signal &&
      onAbort(signal, () => {
        fail(signal.reason)
        clientRequest.destroy(abortError(signal))
      })
    // Without the end, nothing of a request is written.
    const sendNow = () => {
      if (clientRequest.destroyed) return
      try {
        beforeSend?.()
        clientRequest.end(bytes)
      } catch (error) {
        fail(error)
        clientRequest.destroy()
      }
    }
    clientRequest.on('socket', socket => {
      if (!socket.connecting) {
        if (beforeSend) sendNow()
        return
      }
      const isTls = protocol === 'https:'
      const timer = setTimeout(() => clientRequest.destroy(withCode('connect timed out', 'ERR_CONNECT_TIMEOUT')), connectTimeoutMs)
      const stop = () => clearTimeout(timer)
      socket.once(isTls ? 'secureConnect' : 'connect', stop)
      if (beforeSend) socket.once(isTls ? 'secureConnect' : 'connect', sendNow)
      socket.once('close', stop)
    })
    clientRequest.on('timeout', () => {
      clientRequest.destroy(
        hasResponse
          ? withCode('the response body stalled', 'ERR_RESPONSE_BODY_TIMEOUT')
          : withCode('the response timed out', 'ERR_RESPONSE_TIMEOUT'),
      )
    })
    clientRequest.on('response', () => {
      hasResponse = true
      if (pauseMs !== timeoutMs) clientRequest.setTimeout(pauseMs)
    })
    clientRequest.on('error', fail)
    clientRequest.on('close', () => {
      this.#active.delete(clientRequest)
      release?.()
    })
    if (!beforeSend) clientRequest.end(bytes)
    return clientRequest
  }

  #open(certificate: Authentication['certificate']): Connections | Promise<Connections> {
    if (this.#closed) throw this.#closed
    const connections = this.#connections
    if (connections && connections.certificate?.cert === certificate?.cert) return connections
    this.#opening ??= this.#build(certificate)
      .then(built => {
        // Connections with the previous certificate finish their requests; idle ones close by their timeout.
        this.#connections?.pipelined?.drain()
        this.#connections = built
        if (this.#closed) {
          built.pipelined?.destroy()
          throw this.#closed
        }
        return built
      })
      .finally(() => {
        this.#opening = undefined
      })
    return this.#opening
  }

  async #build(certificate: Authentication['certificate']): Promise<Connections> {
    const socketPath = this.#socketPath
    const tls = socketPath === undefined ? await loadTlsOptions(this.#access, certificate) : { rejectUnauthorized: true }
    if (this.#isTls && tls.ca === undefined) restoreBundledRootCertificates()
    const pipelined =
      this.#access.proxyUrl && socketPath === undefined
        ? undefined
        : new ConnectionPool({
            origin: this.#origin.origin,
            socketPath,
            tls,
            preferredConnections: this.#preferredConnections,
            maxPipelined,
            maxConnections: maxRequestConnections,
            connectTimeoutMs,
            keepAliveMs,
            maxResponseBytes,
          })
    return { tls, agents: undefined, pipelined, certificate }
  }

  #agentsOf(connections: Connections): Agents {
    if (connections.agents) return connections.agents
    const isTls = this.#isTls
    const socketPath = this.#socketPath
    const { proxyUrl } = this.#access
    const { Agent, request: send } = process.getBuiltinModule(isTls ? 'node:https' : 'node:http')
    const newAgent = (maxSockets: number) =>
      new Agent({
        ...connections.tls,
        keepAlive: true,
        keepAliveMsecs: 30_000,
        maxSockets,
        timeout: keepAliveMs,
        ...(socketPath !== undefined && socketAgentOptions(socketPath)),
        ...(socketPath === undefined && proxyUrl && { proxyEnv: { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl } }),
      })
    connections.agents = { send, requests: newAgent(maxRequestConnections), streams: newAgent(Number.POSITIVE_INFINITY) }
    return connections.agents
  }

  get #isTls(): boolean {
    return this.#origin.protocol === 'https:'
  }
}

const isTextOrUndefined = (body: TransportRequest['body']) => body === undefined || (typeof body === 'string' && body.length < 1_048_576)
