import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, ConnectionError, type RequestOptions, type Response, type StreamResponse, WrappedClient } from '../client/index.ts'
import { StatusError } from '../object/index.ts'
import { seededRandom } from './seeded-random.ts'

/** How often each fault happens, from 0 (never, the default) to 1. At most one of them befalls a request. */
export type Faults = {
  /** Which chances come up; the same seed and the same order of requests give the same faults. Default 1. */
  seed?: number | undefined
  /** The connection breaks before the server sees the request. */
  drop?: number | undefined
  /** The server does what was asked, and its answer is lost. */
  dropAnswer?: number | undefined
  /** The answer comes late, by up to `delayMs` (default 50). */
  delay?: number | undefined
  delayMs?: number | undefined
  /** Conflict, for writes only. */
  conflict?: number | undefined
  /** Gone, for lists and watches only. */
  gone?: number | undefined
  /** Too many requests, without a Retry-After: what the client's own retries did not absorb. */
  tooMany?: number | undefined
  /** Internal server error. */
  internal?: number | undefined
  /** A write arrives twice, as through a proxy that tries again, and the second answer is told. */
  duplicate?: number | undefined
  /** A watch brings some of its events twice. Asked for each chunk of whole lines. */
  repeatEvents?: number | undefined
  /** A watch breaks after some of its bytes, in the middle of a line too. Asked for each chunk. */
  cutWatch?: number | undefined
  /**
   * A resumed watch brings events of the one before again, after newer ones, as from a replica of the server that lags behind or
   * an old connection that ends last. Asked once for each watch.
   */
  lateEvents?: number | undefined
  /** Limits faults to some requests. Default: all. */
  only?(request: RequestOptions): boolean
}

/** How often each fault happened. */
export type FaultCounts = Record<
  'drop' | 'dropAnswer' | 'delay' | 'conflict' | 'gone' | 'tooMany' | 'internal' | 'duplicate' | 'repeatEvents' | 'cutWatch' | 'lateEvents',
  number
>

/**
 * A client whose requests fail as `faults` say, above the retries of the real one: what it throws is what a reconcile or
 * a list+watch has to live with. `faults` may be changed at any time, and `happened` counts. Closing is left to the
 * owner of `client`.
 */
export function withFaults(client: Client, faults: Faults): Client & { readonly happened: FaultCounts } {
  return new FaultClient(client, faults)
}

const newline = 10

/** What is remembered of earlier watches: one chunk of lines for each path. */
const rememberedPaths = 64
const rememberedBytes = 65_536

class FaultClient extends WrappedClient {
  readonly #faults: Faults
  readonly #random: () => number
  /** The last whole lines that a watch of this path brought. */
  readonly #brought = new Map<string, Uint8Array>()
  readonly happened: FaultCounts = {
    drop: 0,
    dropAnswer: 0,
    delay: 0,
    conflict: 0,
    gone: 0,
    tooMany: 0,
    internal: 0,
    duplicate: 0,
    repeatEvents: 0,
    cutWatch: 0,
    lateEvents: 0,
  }

  constructor(client: Client, faults: Faults) {
    super(client)
    this.#faults = faults
    this.#random = seededRandom(faults.seed ?? 1)
  }

  override async request(options: RequestOptions): Promise<Response> {
    const fate = await this.#befall(options)
    // The first answer is nobody's, whatever it is.
    if (fate === 'twice') await this.inner.request(options).catch(() => undefined)
    const response = await this.inner.request(options)
    if (fate === 'lost') throw this.#broken(options)
    return response
  }

  override async stream(options: RequestOptions & { idleTimeoutMs?: number | undefined }): Promise<StreamResponse> {
    if ((await this.#befall(options)) === 'lost') throw this.#broken(options)
    const response = await this.inner.stream(options)
    return { ...response, body: this.#cut(response.body, options) }
  }

  /** Left to the owner of the real client. */
  override async close(): Promise<void> {}

  /** Throws, waits or does nothing; says if the answer is to be lost, or the request to be made twice. */
  async #befall(options: RequestOptions): Promise<'lost' | 'twice' | undefined> {
    const faults = this.#faults
    if (faults.only && !faults.only(options)) return undefined
    const isRead = options.method === 'GET'
    const chance = this.#random()
    let sum = 0
    const hits = (name: keyof FaultCounts, applies: boolean) => {
      const rate = applies ? (faults[name] ?? 0) : 0
      sum += rate
      const isHit = rate > 0 && chance >= sum - rate && chance < sum
      if (isHit) this.happened[name]++
      return isHit
    }
    if (hits('drop', true)) throw this.#broken(options)
    if (hits('dropAnswer', true)) return 'lost'
    if (hits('duplicate', !isRead)) return 'twice'
    if (hits('conflict', !isRead)) throw new StatusError('Conflict', 'injected: the object has been modified', { code: 409 })
    if (hits('gone', isRead)) throw new StatusError('Expired', 'injected: too old resource version', { code: 410 })
    if (hits('tooMany', true)) throw new StatusError('TooManyRequests', 'injected: too many requests', { code: 429 })
    if (hits('internal', true)) throw new StatusError('InternalError', 'injected: internal error', { code: 500 })
    if (hits('delay', true)) await sleep(this.#random() * (faults.delayMs ?? 50))
    return undefined
  }

  async *#cut(body: AsyncIterable<Uint8Array>, options: RequestOptions): AsyncGenerator<Uint8Array, void, undefined> {
    const hits = (name: 'repeatEvents' | 'cutWatch' | 'lateEvents') => {
      const rate = this.#faults[name] ?? 0
      const isHit = rate > 0 && (this.#faults.only?.(options) ?? true) && this.#random() < rate
      if (isHit) this.happened[name]++
      return isHit
    }
    const { path, query } = options
    // Within a list there is nothing that could be late.
    let late = query?.watch === true && !query.sendInitialEvents ? this.#brought.get(path) : undefined
    if (late && !hits('lateEvents')) late = undefined
    let isLineStart = true
    for await (const chunk of body) {
      const isWhole = isLineStart && chunk.at(-1) === newline
      isLineStart = chunk.at(-1) === newline
      if (isWhole && hits('repeatEvents')) yield chunk
      if (hits('cutWatch')) {
        yield chunk.subarray(0, Math.floor(this.#random() * chunk.length))
        throw this.#broken(options)
      }
      yield chunk
      if (late && isLineStart) {
        yield late
        late = undefined
      }
      if (isWhole && chunk.length <= rememberedBytes) this.#remember(path, chunk)
    }
  }

  #remember(path: string, chunk: Uint8Array): void {
    if (this.#brought.size >= rememberedPaths && !this.#brought.has(path)) this.#brought.clear()
    this.#brought.set(path, chunk)
  }

  #broken({ method, path }: RequestOptions): ConnectionError {
    const cause = Object.assign(new Error('injected: connection reset'), { code: 'ECONNRESET' })
    return new ConnectionError(this.server, `${method} ${path.split('?')[0]}`, cause)
  }
}
