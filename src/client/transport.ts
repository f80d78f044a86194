import { readFile } from 'node:fs/promises'
import type { Dispatcher } from 'undici'
import type { Authentication } from './authenticator.ts'
import type { ClusterAccess, Pem } from './cluster-access.ts'
import { onAbort } from './on-abort.ts'
import { Pipeline } from './pipeline.ts'
import type { Answer } from './read-answer.ts'

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
export type Streaming = { status: number; headers: Answer['headers']; body: AsyncIterable<Buffer> }

type Pools = {
  requests: Dispatcher
  streams: Dispatcher
  /** Not through a proxy: what stands in between may not understand it. */
  short: Pipeline | undefined
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
const maxAnswerBytes = 268_435_456
const pauseAboveBytes = 1_048_576

/**
 * The connections to one server: HTTP/1.1 over keep-alive pools, apart for requests and for long streams, so that many
 * watches never leave a write waiting. Knows nothing of Kubernetes.
 */
export class Transport {
  readonly #access: ClusterAccess
  readonly #origin: string
  readonly #prefix: string
  readonly #spread: number
  #pools: Pools | undefined
  #opening: Promise<Pools> | undefined
  #isClosed = false

  /** @param spread connections for short requests before they wait for one another */
  constructor(access: ClusterAccess, spread: number) {
    this.#access = access
    this.#spread = spread
    const { origin, pathname } = new URL(access.server)
    this.#origin = origin
    this.#prefix = pathname.replace(/\/$/, '')
  }

  /** Sends a request and collects its answer. Rejects with undici's error, or with the reason of `signal`. */
  async exchange(outgoing: Outgoing, certificate: Authentication['certificate']): Promise<Answer> {
    const opening = this.#open(certificate)
    const pools = opening instanceof Promise ? await opening : opening
    if (pools.short && outgoing.isShort && isTextOrNothing(outgoing.body)) {
      return await pools.short.exchange(this.#prefix ? { ...outgoing, path: this.#prefix + outgoing.path } : outgoing)
    }
    return new Promise<Answer>((resolve, reject) => {
      const { signal } = outgoing
      if (signal?.aborted) return reject(signal.reason)
      let controller: Dispatcher.DispatchController | undefined
      let status = 0
      let headers: Answer['headers'] = {}
      let size = 0
      const chunks: Buffer[] = []
      const release =
        signal &&
        onAbort(signal, () => {
          reject(signal.reason)
          controller?.abort(asError(signal.reason))
        })
      const settle = (run: () => void) => {
        release?.()
        run()
      }
      this.#dispatch(pools.requests, outgoing, {
        onRequestStart(started) {
          controller = started
          if (signal?.aborted) started.abort(asError(signal.reason))
        },
        onResponseStart(_controller, code, received) {
          // 1xx answers come before the real one.
          if (code < 200) return
          status = code
          headers = received
        },
        onResponseData(active, chunk) {
          size += chunk.length
          if (size > maxAnswerBytes)
            return active.abort(new Error(`the answer is larger than ${maxAnswerBytes} bytes: list in pages with limit`))
          chunks.push(chunk)
        },
        onResponseEnd() {
          const body = chunks.length === 1 ? (chunks[0] as Buffer).toString('utf8') : Buffer.concat(chunks).toString('utf8')
          settle(() => resolve({ status, headers, body }))
        },
        onResponseError(_controller, error) {
          settle(() => reject(error))
        },
      })
    })
  }

  /**
   * Sends a request whose answer goes on for long. The promise resolves with the head; the body throws undici's error
   * when it is cut, and ends quietly when `signal` aborts.
   */
  async stream(outgoing: Outgoing & { idleTimeoutMs: number }, certificate: Authentication['certificate']): Promise<Streaming> {
    const pools = await this.#open(certificate)
    return new Promise<Streaming>((resolve, reject) => {
      const { signal } = outgoing
      if (signal?.aborted) return reject(signal.reason)
      const body = new StreamBody()
      let controller: Dispatcher.DispatchController | undefined
      const release =
        signal &&
        onAbort(signal, () => {
          reject(signal.reason)
          body.end()
          controller?.abort(asError(signal.reason))
        })
      const settled = () => release?.()
      this.#dispatch(
        pools.streams,
        outgoing,
        {
          onRequestStart(started) {
            controller = started
            body.attach(started)
            if (signal?.aborted) started.abort(asError(signal.reason))
          },
          onResponseStart(_controller, status, headers) {
            if (status >= 200) resolve({ status, headers, body })
          },
          onResponseData(_controller, chunk) {
            body.push(chunk)
          },
          onResponseEnd() {
            settled()
            body.end()
          },
          onResponseError(_controller, error) {
            settled()
            reject(error)
            body.fail(error)
          },
        },
        outgoing.idleTimeoutMs,
      )
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const pools = this.#pools ?? (await this.#opening?.catch(() => undefined))
    pools?.short?.destroy()
    await Promise.all([pools?.requests.destroy(), pools?.streams.destroy()])
  }

  #dispatch(pool: Dispatcher, outgoing: Outgoing, handler: Dispatcher.DispatchHandler, bodyTimeout = outgoing.timeoutMs): void {
    const { method, path, headers, body = null, timeoutMs } = outgoing
    pool.dispatch(
      // An empty string would be sent without a Content-Length, which some servers refuse for POST.
      {
        origin: this.#origin,
        path: this.#prefix + path,
        method,
        headers,
        body: body as string | Buffer | null,
        headersTimeout: timeoutMs,
        bodyTimeout,
      },
      handler,
    )
  }

  #open(certificate: Authentication['certificate']): Pools | Promise<Pools> {
    if (this.#isClosed) throw new Error('the client is closed')
    const pools = this.#pools
    if (pools && pools.certificate?.cert === certificate?.cert) return pools
    this.#opening ??= this.#build(certificate)
      .then(async built => {
        const old = this.#pools
        this.#pools = built
        // Connections with the old certificate finish what they do.
        if (old) {
          old.short?.retire()
          for (const pool of [old.requests, old.streams]) pool.close().catch(() => undefined)
        }
        if (this.#isClosed) {
          built.short?.destroy()
          await Promise.all([built.requests.destroy(), built.streams.destroy()])
        }
        return built
      })
      .finally(() => {
        this.#opening = undefined
      })
    return this.#opening
  }

  async #build(certificate: Authentication['certificate']): Promise<Pools> {
    // Loaded on first use: it is the largest part of this room, and many importers of types and kinds never send a request.
    const { Pool, ProxyAgent } = await import('undici')
    const { ca, clientCertificate, clientKey, insecureSkipTlsVerify, tlsServerName, proxyUrl } = this.#access
    const tls = {
      ca: await readPem(ca),
      cert: certificate?.cert ?? (await readPem(clientCertificate)),
      key: certificate?.key ?? (await readPem(clientKey)),
      rejectUnauthorized: !insecureSkipTlsVerify,
      ...(tlsServerName && { servername: tlsServerName }),
    }
    const connect = { ...tls, timeout: connectTimeoutMs, keepAlive: true, keepAliveInitialDelay: 30_000 }
    const shared = { allowH2: false, pipelining: 1, keepAliveTimeout: keepAliveMs, connect }
    if (proxyUrl) {
      const open = (connections: number | null) => new ProxyAgent({ ...shared, uri: proxyUrl, requestTls: connect, connections })
      return { requests: open(requestConnections), streams: open(null), short: undefined, certificate }
    }
    const open = (connections: number | null) => new Pool(this.#origin, { ...shared, connections })
    const short = new Pipeline({
      origin: this.#origin,
      tls,
      spread: this.#spread,
      depth: pipelineDepth,
      maxConnections: requestConnections,
      connectTimeoutMs,
      keepAliveMs,
      maxAnswerBytes,
    })
    return { requests: open(requestConnections), streams: open(null), short, certificate }
  }
}

/** Chunks between a socket and a reader: stops reading from the socket while the reader is behind (invariant 10). */
class StreamBody implements AsyncIterable<Buffer> {
  #controller: Dispatcher.DispatchController | undefined
  #chunks: Buffer[] = []
  #waitingBytes = 0
  #isEnded = false
  #error: unknown
  #wake: (() => void) | undefined

  attach(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
  }

  push(chunk: Buffer): void {
    if (this.#isEnded) return
    this.#chunks.push(chunk)
    this.#waitingBytes += chunk.length
    if (this.#waitingBytes > pauseAboveBytes) this.#controller?.pause()
    this.#wake?.()
  }

  end(): void {
    this.#isEnded = true
    this.#wake?.()
  }

  fail(error: unknown): void {
    if (this.#isEnded) return
    this.#error = error
    this.end()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (;;) {
        const chunks = this.#chunks
        if (chunks.length > 0) {
          this.#chunks = []
          this.#waitingBytes = 0
          this.#controller?.resume()
          yield* chunks
        } else if (this.#isEnded) {
          if (this.#error) throw this.#error
          return
        } else {
          await new Promise<void>(resolve => {
            this.#wake = resolve
          })
          this.#wake = undefined
        }
      }
    } finally {
      if (!this.#isEnded) {
        this.#isEnded = true
        this.#controller?.abort(new Error('the reader of the stream stopped'))
      }
    }
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
