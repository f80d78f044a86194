import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Agent, ClientRequest, request as httpRequest, OutgoingHttpHeaders } from 'node:http'
import type { Authentication } from './authenticator.ts'
import type { ClusterAccess, Pem } from './cluster-access.ts'
import { ClientClosedError, withCode } from './connection-error.ts'
import { ConnectionPool } from './connection-pool.ts'
import { onAbort } from './on-abort.ts'
import type { RawResponse } from './read-response.ts'
import { readRootCertificates } from './root-certificates.ts'
import { StreamBody } from './stream-body.ts'

/** One HTTP request, ready to be sent. `timeoutMs` bounds the wait for the answer's head and each pause inside its body. */
export type Outgoing = {
  method: string
  path: string
  headers: Record<string, string | string[]>
  body?: string | Uint8Array | undefined
  timeoutMs: number
  signal?: AbortSignal | undefined
  /** Answered soon and with little: may share a connection with others that wait for their answers. */
  isShort?: boolean
}

/** An answer that is still coming. Leaving the loop over `body` closes the connection. */
export type Streaming = { status: number; headers: RawResponse['headers']; body: AsyncIterable<Buffer> }

/** What a client sends its requests with. */
export type Exchanger = {
  /** Sends a request and collects its answer. Rejects with an error that has a `code`, or with the reason of the signal. */
  exchange(outgoing: Outgoing, certificate: Authentication['certificate']): Promise<RawResponse>
  /**
   * Sends a request whose answer goes on for long. The promise resolves with the head; the body throws an error with a
   * `code` when it is cut, and ends quietly when the signal aborts.
   */
  stream(outgoing: Outgoing & { idleTimeoutMs: number }, certificate: Authentication['certificate']): Promise<Streaming>
  close(): Promise<void>
}

type Pools = {
  send: typeof httpRequest
  requests: Agent
  streams: Agent
  /** Not through a proxy: what stands in between may not understand it. */
  short: ConnectionPool | undefined
  certificate: Authentication['certificate']
}

/**
 * How many requests run at once; further ones wait their turn. A busy controller keeps some tens in flight, and a server
 * answers in milliseconds, so this is far above what one process can use and far below what a server minds.
 */
const requestConnections = 64
const pipelineDepth = 64
const connectTimeoutMs = 10_000
/** Below the 90 s and more of common API servers and balancers; a server that says less in Keep-Alive is believed. */
const keepAliveMs = 45_000
export const maxAnswerBytes = 268_435_456
const pauseAboveBytes = 1_048_576

/**
 * The connections to one server: HTTP/1.1 over keep-alive pools, apart for requests and for long streams, so that many
 * watches never leave a write waiting. Knows nothing of Kubernetes. Built on `node:http`, which is in every process
 * already: a client library beside it cost 20 MB and 80 ms at each start.
 */
export class Transport implements Exchanger {
  readonly #access: ClusterAccess
  readonly #origin: URL
  readonly #prefix: string
  readonly #spread: number
  #pools: Pools | undefined
  #opening: Promise<Pools> | undefined
  /** To be cut by `close`: an agent destroys its sockets, and then opens new ones for the requests that wait for one. */
  readonly #active = new Set<ClientRequest>()
  #isClosed = false

  /** @param spread connections for short requests before they wait for one another */
  constructor(access: ClusterAccess, spread: number) {
    this.#access = access
    this.#spread = spread
    const url = new URL(access.server)
    this.#origin = new URL(url.origin)
    this.#prefix = url.pathname.replace(/\/$/, '')
  }

  exchange(outgoing: Outgoing, certificate: Authentication['certificate']): Promise<RawResponse> {
    const opening = this.#open(certificate)
    return opening instanceof Promise ? opening.then(pools => this.#exchange(pools, outgoing)) : this.#exchange(opening, outgoing)
  }

  #exchange(pools: Pools, outgoing: Outgoing): Promise<RawResponse> {
    if (pools.short && outgoing.isShort && isTextOrNothing(outgoing.body)) {
      return pools.short.exchange(this.#prefix ? { ...outgoing, path: this.#prefix + outgoing.path } : outgoing)
    }
    return new Promise<RawResponse>((resolve, reject) => {
      const request = this.#send(pools, pools.requests, outgoing, outgoing.timeoutMs, reject)
      request?.on('response', response => {
        let size = 0
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => {
          size += chunk.length
          if (size > maxAnswerBytes)
            request.destroy(new Error(`the answer is larger than ${maxAnswerBytes} bytes: list in pages with limit`))
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

  async stream(outgoing: Outgoing & { idleTimeoutMs: number }, certificate: Authentication['certificate']): Promise<Streaming> {
    const pools = await this.#open(certificate)
    return new Promise<Streaming>((resolve, reject) => {
      const request = this.#send(pools, pools.streams, outgoing, outgoing.idleTimeoutMs, reject)
      request?.on('response', response => {
        let waitingBytes = 0
        const body = new StreamBody({
          taken: () => {
            waitingBytes = 0
            if (response.isPaused()) response.resume()
          },
          leave: () => request.destroy(),
        })
        // Nothing more is read from the socket while the reader is behind.
        response.on('data', (chunk: Buffer) => {
          if (body.isEnded) return
          waitingBytes += chunk.length
          if (waitingBytes > pauseAboveBytes) response.pause()
          body.push(chunk)
        })
        response.on('end', () => body.end())
        // Of the two the request's is the more telling one, and comes first.
        for (const source of [request, response]) {
          source.on('error', error => {
            if (outgoing.signal?.aborted) body.end()
            else body.fail(error)
          })
        }
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body })
      })
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const pools = this.#pools ?? (await this.#opening?.catch(() => undefined))
    pools?.short?.destroy()
    for (const request of this.#active) request.destroy(new ClientClosedError())
    for (const agent of [pools?.requests, pools?.streams]) agent?.destroy()
  }

  /** Writes a request; `fail` is told what ends it before its answer began. `pauseMs` bounds each silence inside the answer, 0 does not. */
  #send(
    pools: Pools,
    agent: Agent,
    { method, path, headers, body, timeoutMs, signal }: Outgoing,
    pauseMs: number,
    fail: (error: unknown) => void,
  ): ClientRequest | undefined {
    if (signal?.aborted) {
      fail(signal.reason)
      return undefined
    }
    const { protocol, hostname, port } = this.#origin
    const all: OutgoingHttpHeaders = { ...headers }
    if (body !== undefined || method === 'POST' || method === 'PUT' || method === 'PATCH') {
      all['content-length'] = Buffer.byteLength(body ?? '')
    }
    const request = pools.send({
      protocol,
      hostname: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
      port: port || undefined,
      agent,
      method,
      path: this.#prefix + path,
      headers: all,
      timeout: timeoutMs,
    })
    this.#active.add(request)
    let isInside = false
    const release =
      signal &&
      onAbort(signal, () => {
        fail(signal.reason)
        request.destroy(asError(signal.reason))
      })
    request.on('socket', socket => {
      if (!socket.connecting) return
      const isTls = protocol === 'https:'
      const timer = setTimeout(() => request.destroy(withCode('no connection in time', 'UND_ERR_CONNECT_TIMEOUT')), connectTimeoutMs)
      const stop = () => clearTimeout(timer)
      socket.once(isTls ? 'secureConnect' : 'connect', stop)
      socket.once('close', stop)
    })
    request.on('timeout', () => {
      request.destroy(
        isInside
          ? withCode('the answer stopped in the middle', 'UND_ERR_BODY_TIMEOUT')
          : withCode('no answer in time', 'UND_ERR_HEADERS_TIMEOUT'),
      )
    })
    request.on('response', () => {
      isInside = true
      if (pauseMs !== timeoutMs) request.setTimeout(pauseMs)
    })
    request.on('error', fail)
    request.on('close', () => {
      this.#active.delete(request)
      release?.()
    })
    request.end(body)
    return request
  }

  #open(certificate: Authentication['certificate']): Pools | Promise<Pools> {
    if (this.#isClosed) throw new ClientClosedError()
    const pools = this.#pools
    if (pools && pools.certificate?.cert === certificate?.cert) return pools
    this.#opening ??= this.#build(certificate)
      .then(built => {
        // Connections with the old certificate finish what they do; idle ones end by their timeout.
        this.#pools?.short?.retire()
        this.#pools = built
        if (this.#isClosed) {
          built.short?.destroy()
          throw new ClientClosedError()
        }
        return built
      })
      .finally(() => {
        this.#opening = undefined
      })
    return this.#opening
  }

  async #build(certificate: Authentication['certificate']): Promise<Pools> {
    const { ca, clientCertificate, clientKey, insecureSkipTlsVerify, tlsServerName, proxyUrl, source } = this.#access
    const cert = certificate?.cert ?? (await readPem(clientCertificate))
    const key = certificate?.key ?? (await readPem(clientKey))
    if ((cert === undefined) !== (key === undefined)) {
      const [there, missing] = key === undefined ? ['certificate', 'key'] : ['key', 'certificate']
      throw new TypeError(`${source} has a client ${there} without a client ${missing}: give both or none`)
    }
    const tls = {
      ca: checkedCertificate(await readPem(ca), `the certificate authority of ${source}`),
      cert: checkedCertificate(cert, `the client certificate of ${source}`),
      key,
      rejectUnauthorized: !insecureSkipTlsVerify,
      ...(tlsServerName && { servername: tlsServerName }),
    }
    const isTls = this.#origin.protocol === 'https:'
    if (isTls && tls.ca === undefined) readRootCertificates()
    // Loaded on first use: many importers of types and kinds never send a request.
    const { Agent, request } = isTls ? await import('node:https') : process.getBuiltinModule('node:http')
    const open = (maxSockets: number) =>
      new Agent({
        ...tls,
        keepAlive: true,
        keepAliveMsecs: 30_000,
        maxSockets,
        timeout: keepAliveMs,
        ...(proxyUrl && { proxyEnv: { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl } }),
      })
    const short = proxyUrl
      ? undefined
      : new ConnectionPool({
          origin: this.#origin.origin,
          tls,
          spread: this.#spread,
          depth: pipelineDepth,
          maxConnections: requestConnections,
          connectTimeoutMs,
          keepAliveMs,
          maxAnswerBytes,
        })
    return { send: request, requests: open(requestConnections), streams: open(Number.POSITIVE_INFINITY), short, certificate }
  }
}

/** TLS passes over what it cannot read, and then says that the server is not trusted. */
function checkedCertificate(pem: string | undefined, what: string): string | undefined {
  if (pem === undefined) return undefined
  try {
    new X509Certificate(pem)
    return pem
  } catch (cause) {
    throw new TypeError(`${what} is not a certificate in PEM form: was it cut off, or encoded in base64 twice or not at all?`, { cause })
  }
}

async function readPem(pem: Pem | undefined): Promise<string | undefined> {
  if (!pem) return undefined
  if (pem.kind === 'text') return pem.text
  return await readFile(pem.path, 'utf8').catch(error => {
    throw new TypeError(`certificate or key file ${pem.path} cannot be read (${error.code})`, { cause: error })
  })
}

const isTextOrNothing = (body: Outgoing['body']) => body === undefined || (typeof body === 'string' && body.length < 1_048_576)

const asError = (reason: unknown) => (reason instanceof Error ? reason : new Error('aborted', { cause: reason }))
