import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, ConnectionError, type RequestOptions, type Response, type StreamResponse, WrappedClient } from '../client/index.ts'
import { StatusError } from '../object/index.ts'
import { seededRandom } from '../util/index.ts'

/** The probability of each fault, from 0 (the default) to 1. A request is affected by at most one of them. */
export type Faults = {
  /** The same seed and the same order of requests give the same faults. Default 1. */
  seed?: number | undefined
  /** The connection breaks before the server receives the request. */
  drop?: number | undefined
  /** The server processes the request, but its response is lost. */
  dropResponse?: number | undefined
  /** The response is delayed by up to `delayMs` (default 50). */
  delay?: number | undefined
  delayMs?: number | undefined
  /** Conflict, for writes only. */
  conflict?: number | undefined
  /** Expired (410), for lists and watches only. */
  expired?: number | undefined
  /** Too many requests, without a Retry-After: as after the retries of the client. */
  tooManyRequests?: number | undefined
  /** Internal server error. */
  internalError?: number | undefined
  /** A write is sent twice, as by a proxy that retries, and the second response is returned. */
  duplicate?: number | undefined
  /** A watch repeats events. Applies to each chunk of whole lines. */
  repeatEvents?: number | undefined
  /** A watch breaks after some bytes, possibly within a line. Applies to each chunk. */
  breakWatch?: number | undefined
  /**
   * A resumed watch sends events of the previous one again, after newer ones: as a server replica that lags, or an old
   * connection that ends late. Applies to each watch.
   */
  staleEvents?: number | undefined
  /** Limits faults to some requests. Default: all. */
  filter?(request: RequestOptions): boolean
}

/** The number of injected faults, by kind. */
export type FaultCounts = Record<
  | 'drop'
  | 'dropResponse'
  | 'delay'
  | 'conflict'
  | 'expired'
  | 'tooManyRequests'
  | 'internalError'
  | 'duplicate'
  | 'repeatEvents'
  | 'breakWatch'
  | 'staleEvents',
  number
>

/**
 * A client that injects `faults` above the retries of the real one: they are what a reconcile or a list+watch has to
 * handle. `faults` may be changed at any time, and `injected` counts them. Closing it does not close `client`.
 */
export function withFaults(client: Client, faults: Faults): Client & { readonly injected: FaultCounts } {
  return new FaultClient(client, faults)
}

const newline = 10

/** What is kept of earlier watches: one chunk of lines per path. */
const maxStalePaths = 64
const maxStaleBytes = 65_536

class FaultClient extends WrappedClient {
  readonly #faults: Faults
  readonly #random: () => number
  /** The last chunk of whole lines that a watch of each path received. */
  readonly #lastChunks = new Map<string, Uint8Array>()
  readonly injected: FaultCounts = {
    drop: 0,
    dropResponse: 0,
    delay: 0,
    conflict: 0,
    expired: 0,
    tooManyRequests: 0,
    internalError: 0,
    duplicate: 0,
    repeatEvents: 0,
    breakWatch: 0,
    staleEvents: 0,
  }

  constructor(client: Client, faults: Faults) {
    super(client)
    this.#faults = faults
    this.#random = seededRandom(faults.seed ?? 1)
  }

  override async request(options: RequestOptions): Promise<Response> {
    const fault = await this.#inject(options)
    // The first response is discarded, whatever it is.
    if (fault === 'duplicate') await this.inner.request(options).catch(() => undefined)
    const response = await this.inner.request(options)
    if (fault === 'dropResponse') throw this.#connectionReset(options)
    return response
  }

  override async stream(options: RequestOptions & { idleTimeoutMs?: number | undefined }): Promise<StreamResponse> {
    if ((await this.#inject(options)) === 'dropResponse') throw this.#connectionReset(options)
    const response = await this.inner.stream(options)
    return { ...response, body: this.#injectIntoStream(response.body, options) }
  }

  /** Left to the owner of the real client. */
  override async close(): Promise<void> {}

  /** Throws, waits or does nothing; returns the faults that the caller has to inject. */
  async #inject(options: RequestOptions): Promise<'dropResponse' | 'duplicate' | undefined> {
    const faults = this.#faults
    if (faults.filter && !faults.filter(options)) return undefined
    const isRead = options.method === 'GET'
    const chance = this.#random()
    let sum = 0
    const hits = (name: keyof FaultCounts, applies: boolean) => {
      const rate = applies ? (faults[name] ?? 0) : 0
      sum += rate
      const isHit = rate > 0 && chance >= sum - rate && chance < sum
      if (isHit) this.injected[name]++
      return isHit
    }
    if (hits('drop', true)) throw this.#connectionReset(options)
    if (hits('dropResponse', true)) return 'dropResponse'
    if (hits('duplicate', !isRead)) return 'duplicate'
    if (hits('conflict', !isRead)) throw new StatusError('Conflict', 'injected: the object has been modified', { code: 409 })
    if (hits('expired', isRead)) throw new StatusError('Expired', 'injected: too old resource version', { code: 410 })
    if (hits('tooManyRequests', true)) throw new StatusError('TooManyRequests', 'injected: too many requests', { code: 429 })
    if (hits('internalError', true)) throw new StatusError('InternalError', 'injected: internal error', { code: 500 })
    if (hits('delay', true)) await sleep(this.#random() * (faults.delayMs ?? 50))
    return undefined
  }

  async *#injectIntoStream(body: AsyncIterable<Uint8Array>, options: RequestOptions): AsyncGenerator<Uint8Array, void, undefined> {
    const hits = (name: 'repeatEvents' | 'breakWatch' | 'staleEvents') => {
      const rate = this.#faults[name] ?? 0
      const isHit = rate > 0 && (this.#faults.filter?.(options) ?? true) && this.#random() < rate
      if (isHit) this.injected[name]++
      return isHit
    }
    const { path, query } = options
    // A streaming list has no earlier events.
    let stale = query?.watch === true && !query.sendInitialEvents ? this.#lastChunks.get(path) : undefined
    if (stale && !hits('staleEvents')) stale = undefined
    let isLineStart = true
    for await (const chunk of body) {
      const isWhole = isLineStart && chunk.at(-1) === newline
      isLineStart = chunk.at(-1) === newline
      if (isWhole && hits('repeatEvents')) yield chunk
      if (hits('breakWatch')) {
        yield chunk.subarray(0, Math.floor(this.#random() * chunk.length))
        throw this.#connectionReset(options)
      }
      yield chunk
      if (stale && isLineStart) {
        yield stale
        stale = undefined
      }
      if (isWhole && chunk.length <= maxStaleBytes) this.#remember(path, chunk)
    }
  }

  #remember(path: string, chunk: Uint8Array): void {
    if (this.#lastChunks.size >= maxStalePaths && !this.#lastChunks.has(path)) this.#lastChunks.clear()
    this.#lastChunks.set(path, chunk)
  }

  #connectionReset({ method, path }: RequestOptions): ConnectionError {
    const cause = Object.assign(new Error('injected: connection reset'), { code: 'ECONNRESET' })
    return new ConnectionError(this.server, `${method} ${path.split('?')[0]}`, cause)
  }
}
