import { ClientClosedError, withCode } from './connection-error.ts'
import { abortError, onAbort } from './on-abort.ts'
import { StreamBody } from './stream-body.ts'
import {
  maxResponseBytes,
  responseTooLarge,
  type Transport,
  type TransportRequest,
  type TransportResponse,
  type TransportStreamResponse,
} from './transport.ts'

/** An API server in this process, as `connect()` of `oarlock/server` returns it: requests reach it without a socket. */
export type LocalServer = {
  call(
    request: Pick<TransportRequest, 'method' | 'path' | 'headers' | 'body'>,
    sink: {
      head(status: number, headers: TransportResponse['headers']): void
      data(chunk: string | Buffer): void
      end(): void
      abort(): void
    },
  ): { consumed(bytes: number): void; cancel(): void }
}

type LocalSink = Parameters<LocalServer['call']>[1]

/** Sends requests to a server in the same process: no TLS, no copies, and no delay. */
export class LocalTransport implements Transport {
  readonly #server: LocalServer
  /** The `fail` functions of the calls in flight. */
  readonly #active = new Set<(error: Error) => void>()
  #isClosed = false

  constructor(server: LocalServer) {
    this.#server = server
  }

  request(request: TransportRequest): Promise<TransportResponse> {
    return new Promise((resolve, reject) => {
      let status = 0
      let headers: TransportResponse['headers'] = {}
      let chunks: (string | Buffer)[] = []
      let size = 0
      const call = this.#call(request, reject, {
        head: (code, all) => {
          status = code
          headers = all
        },
        data: chunk => {
          size += chunk.length
          if (size > maxResponseBytes) {
            chunks = []
            call.fail(responseTooLarge(maxResponseBytes))
            return
          }
          chunks.push(chunk)
          call.consumed(chunk.length)
        },
        end: () => {
          const body = chunks.length === 1 ? String(chunks[0]) : joinText(chunks)
          chunks = []
          resolve({ status, headers, body })
        },
      })
    })
  }

  stream(request: TransportRequest): Promise<TransportStreamResponse> {
    return new Promise((resolve, reject) => {
      const body = new StreamBody({ consumed: length => call.consumed(length), cancel: () => call.cancel() })
      let hasHead = false
      const onError = (error: Error) => {
        if (!hasHead) reject(error)
        else if (request.signal?.aborted) body.end()
        else body.fail(error)
      }
      const call = this.#call(request, onError, {
        head: (status, headers) => {
          hasHead = true
          resolve({ status, headers, body })
        },
        data: chunk => body.push(chunk),
        end: () => body.end(),
      })
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const fail of this.#active) fail(new ClientClosedError())
  }

  /** `onError` is called at most once, and the sink is not called after it. */
  #call(request: TransportRequest, onError: (error: Error) => void, sink: Omit<LocalSink, 'abort'>): LocalCall {
    const { signal, timeoutMs } = request
    if (this.#isClosed) throw new ClientClosedError()
    signal?.throwIfAborted()
    request.beforeSend?.()
    const settle = () => {
      clearTimeout(timer)
      release?.()
      this.#active.delete(fail)
    }
    const cancel = () => {
      settle()
      call.cancel()
    }
    const fail = (error: Error) => {
      cancel()
      onError(error)
    }
    // The server responds in a later turn of the event loop, when `timer` and `release` are set.
    const call = this.#server.call(request, {
      ...sink,
      head: (status, headers) => {
        clearTimeout(timer)
        sink.head(status, headers)
      },
      end: () => {
        settle()
        sink.end()
      },
      abort: () => {
        settle()
        onError(withCode('the server is shutting down', 'ECONNRESET'))
      },
    })
    const timer = setTimeout(() => fail(withCode('the response timed out', 'ERR_RESPONSE_TIMEOUT')), timeoutMs)
    const release = signal && onAbort(signal, () => fail(abortError(signal)))
    this.#active.add(fail)
    return { consumed: bytes => call.consumed(bytes), cancel, fail }
  }
}

/** A request in flight. */
type LocalCall = {
  consumed(bytes: number): void
  /** Discards the response. */
  cancel(): void
  /** Discards the response and reports `error`. */
  fail(error: Error): void
}

function joinText(chunks: readonly (string | Buffer)[]): string {
  if (chunks.every(chunk => typeof chunk === 'string')) return chunks.join('')
  return Buffer.concat(chunks.map(chunk => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk))).toString('utf8')
}
