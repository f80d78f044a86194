import { ClientClosedError, withCode } from './connection-error.ts'
import { onAbort } from './on-abort.ts'
import type { RawResponse } from './read-response.ts'
import { StreamBody } from './stream-body.ts'
import { type Exchanger, maxAnswerBytes, type Outgoing, type Streaming } from './transport.ts'

/** The API server of this process, as `connect()` of `oarlock/server` returns it: asked without a socket in between. */
export type LocalServer = {
  call(
    request: Pick<Outgoing, 'method' | 'path' | 'headers' | 'body'>,
    sink: {
      head(status: number, headers: RawResponse['headers']): void
      data(chunk: string | Buffer): void
      end(): void
      abort(): void
    },
  ): { consumed(bytes: number): void; cancel(): void }
}

/** Exchanges with a server of the same process: no TLS, no copies, and an answer as soon as there is one. */
export class LocalTransport implements Exchanger {
  readonly #server: LocalServer
  /** How to end what is under way. */
  readonly #active = new Set<(error: Error) => void>()
  #isClosed = false

  constructor(server: LocalServer) {
    this.#server = server
  }

  exchange(outgoing: Outgoing): Promise<RawResponse> {
    return new Promise((resolve, reject) => {
      let status = 0
      let headers: RawResponse['headers'] = {}
      let chunks: (string | Buffer)[] = []
      let size = 0
      const call = this.#begin(outgoing, reject, {
        head: (code, all) => {
          status = code
          headers = all
        },
        data: chunk => {
          size += chunk.length
          if (size > maxAnswerBytes) {
            chunks = []
            call.end(new Error(`the answer is larger than ${maxAnswerBytes} bytes: list in pages with limit`))
            return
          }
          chunks.push(chunk)
          call.consumed(chunk.length)
        },
        end: () => {
          const body = chunks.length === 1 ? String(chunks[0]) : textOf(chunks)
          chunks = []
          resolve({ status, headers, body })
        },
      })
    })
  }

  stream(outgoing: Outgoing): Promise<Streaming> {
    return new Promise((resolve, reject) => {
      const body = new StreamBody({ read: length => call.consumed(length), leave: () => call.leave() })
      let isBegun = false
      const fail = (error: Error) => {
        if (!isBegun) reject(error)
        else if (outgoing.signal?.aborted) body.end()
        else body.fail(error)
      }
      const call = this.#begin(outgoing, fail, {
        head: (status, headers) => {
          isBegun = true
          resolve({ status, headers, body })
        },
        data: chunk => body.push(chunk),
        end: () => body.end(),
      })
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const end of this.#active) end(new ClientClosedError())
  }

  /** `fail` is called once at most, and nothing of the sink after it. */
  #begin(outgoing: Outgoing, fail: (error: Error) => void, sink: Omit<Parameters<LocalServer['call']>[1], 'abort'>): LocalExchange {
    const { signal, timeoutMs } = outgoing
    if (this.#isClosed) throw new ClientClosedError()
    signal?.throwIfAborted()
    const settle = () => {
      clearTimeout(timer)
      release?.()
      this.#active.delete(end)
    }
    const leave = () => {
      settle()
      call.cancel()
    }
    const end = (error: Error) => {
      leave()
      fail(error)
    }
    // Answered in a later turn of the event loop.
    const call = this.#server.call(outgoing, {
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
        fail(withCode('the server stops', 'ECONNRESET'))
      },
    })
    const timer = setTimeout(() => end(withCode('no answer in time', 'UND_ERR_HEADERS_TIMEOUT')), timeoutMs)
    const release = signal && onAbort(signal, () => end(asError(signal.reason)))
    this.#active.add(end)
    return { consumed: bytes => call.consumed(bytes), leave, end }
  }
}

/** What is under way. */
type LocalExchange = {
  consumed(bytes: number): void
  /** Nobody waits for the answer any more. */
  leave(): void
  /** The same, and says why. */
  end(error: Error): void
}

function textOf(chunks: readonly (string | Buffer)[]): string {
  if (chunks.every(chunk => typeof chunk === 'string')) return chunks.join('')
  return Buffer.concat(chunks.map(chunk => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk))).toString('utf8')
}

const asError = (reason: unknown) => (reason instanceof Error ? reason : new Error('aborted', { cause: reason }))
