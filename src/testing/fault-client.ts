import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Client,
  ConnectionError,
  type HandleOptions,
  type RequestObserver,
  type RequestOptions,
  ResourceClient,
  type Response,
  type StreamResponse,
} from '../client/index.ts'
import { type Resource, StatusError } from '../kube/index.ts'
import { seededRandom } from './seeded-random.ts'

/** How often each fault happens, from 0 (never, the default) to 1. At most one of them befalls a request. */
export type Faults = {
  /** Which chances come up; the same seed and the same order of requests give the same faults. Default 1. */
  seed?: number
  /** The connection breaks before the server sees the request. */
  drop?: number
  /** The server does what was asked, and its answer is lost. */
  dropAnswer?: number
  /** The answer comes late, by up to `delayMs` (default 50). */
  delay?: number
  delayMs?: number
  /** Conflict, for writes only. */
  conflict?: number
  /** Gone, for lists and watches only. */
  gone?: number
  /** Too many requests, without a Retry-After: what the client's own retries did not absorb. */
  tooMany?: number
  /** Internal server error. */
  internal?: number
  /** A write arrives twice, as through a proxy that tries again, and the second answer is told. */
  duplicate?: number
  /** A watch brings some of its events twice. Asked for each chunk of whole lines. */
  repeatEvents?: number
  /** A watch breaks after some of its bytes, in the middle of a line too. Asked for each chunk. */
  cutWatch?: number
  /** Limits faults to some requests. Default: all. */
  only?(request: RequestOptions): boolean
}

/** How often each fault happened. */
export type FaultReport = Record<
  'drop' | 'dropAnswer' | 'delay' | 'conflict' | 'gone' | 'tooMany' | 'internal' | 'duplicate' | 'repeatEvents' | 'cutWatch',
  number
>

/**
 * A client whose requests fail as `faults` say, above the retries of the real one: what it throws is what a reconcile or
 * a list+watch has to live with. `faults` may be changed at any time, and `happened` counts. Closing is left to the
 * owner of `client`.
 */
export function withFaults(client: Client, faults: Faults): Client & { readonly happened: FaultReport } {
  return new FaultClient(client, faults)
}

const newline = 10

class FaultClient implements Client {
  readonly #client: Client
  readonly #faults: Faults
  readonly #random: () => number
  readonly happened: FaultReport = {
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
  }

  constructor(client: Client, faults: Faults) {
    this.#client = client
    this.#faults = faults
    this.#random = seededRandom(faults.seed ?? 1)
  }

  get server(): string {
    return this.#client.server
  }

  get defaultNamespace(): string {
    return this.#client.defaultNamespace
  }

  get fieldManager(): string {
    return this.#client.fieldManager
  }

  resource<Body>(resource: Resource<Body>, options?: HandleOptions): ResourceClient<Body> {
    return new ResourceClient(this, resource, options)
  }

  discover(apiVersion: string, kind: string): Promise<Resource> {
    return this.#client.discover(apiVersion, kind)
  }

  async request(options: RequestOptions): Promise<Response> {
    const fate = await this.#befall(options)
    // The first answer is nobody's, whatever it is.
    if (fate === 'twice') await this.#client.request(options).catch(() => undefined)
    const response = await this.#client.request(options)
    if (fate === 'lost') throw this.#broken(options)
    return response
  }

  async stream(options: RequestOptions & { idleTimeoutMs?: number }): Promise<StreamResponse> {
    if ((await this.#befall(options)) === 'lost') throw this.#broken(options)
    const response = await this.#client.stream(options)
    return { ...response, body: this.#cut(response.body, options) }
  }

  observeRequests(observer: RequestObserver): () => void {
    return this.#client.observeRequests(observer)
  }

  async close(): Promise<void> {}

  /** Throws, waits or does nothing; says if the answer is to be lost, or the request to be made twice. */
  async #befall(options: RequestOptions): Promise<'lost' | 'twice' | undefined> {
    const faults = this.#faults
    if (faults.only && !faults.only(options)) return undefined
    const isRead = options.method === 'GET'
    const chance = this.#random()
    let sum = 0
    const hits = (name: keyof FaultReport, applies: boolean) => {
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
    let isLineStart = true
    for await (const chunk of body) {
      const repeats = this.#faults.repeatEvents ?? 0
      const isWhole = isLineStart && chunk.at(-1) === newline
      isLineStart = chunk.at(-1) === newline
      if (repeats > 0 && isWhole && (this.#faults.only?.(options) ?? true) && this.#random() < repeats) {
        this.happened.repeatEvents++
        yield chunk
      }
      const rate = this.#faults.cutWatch ?? 0
      if (rate > 0 && (this.#faults.only?.(options) ?? true) && this.#random() < rate) {
        this.happened.cutWatch++
        yield chunk.subarray(0, Math.floor(this.#random() * chunk.length))
        throw this.#broken(options)
      }
      yield chunk
    }
  }

  #broken({ method, path }: RequestOptions): ConnectionError {
    const cause = Object.assign(new Error('injected: connection reset'), { code: 'ECONNRESET' })
    return new ConnectionError(this.server, `${method} ${path.split('?')[0]}`, cause)
  }
}
