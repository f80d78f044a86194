import { nameErrors, StatusError } from '../../kubernetes/object/index.ts'
import { networkOf, TokenBucket } from '../../kubernetes/util/index.ts'
import { ExpiringCache } from '../delegated-auth/expiring-cache.ts'

/** A namespace that no partition has is looked up again after this time. */
const unknownTtlMs = 1_000
const maxUnknown = 10_000
/** Lookups of the clients of one network. */
const lookUpRate = { qps: 5, burst: 20 }
const maxNetworks = 10_000

export type AccountPartitionsOptions = {
  /** The partition of a namespace as this gateway knows it. */
  partitionOf(namespace: string): string | undefined
  /** Reads it from home. @throws {StatusError} ServiceUnavailable. */
  lookUp(namespace: string): Promise<void>
  /** A monotonic clock in milliseconds; default `performance.now`. */
  nowMs?(): number
}

/**
 * Which partition has the namespace that the token of a ServiceAccount claims. The namespace may have been created through another gateway a moment ago, so
 * home is asked about an unknown one; because the token is not verified yet, up to 5 times a second for each network of clients (20 in a burst).
 */
export class AccountPartitions {
  readonly #options: AccountPartitionsOptions
  readonly #unknown: ExpiringCache<void>
  /** By network, in the order of their last lookup. */
  readonly #rates = new Map<string, TokenBucket>()
  readonly #nowMs: () => number

  constructor(options: AccountPartitionsOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? (() => performance.now())
    this.#unknown = new ExpiringCache({ maxEntries: maxUnknown, nowMs: options.nowMs })
  }

  /**
   * @returns undefined if no partition has the namespace.
   * @throws {StatusError} ServiceUnavailable if home does not answer, TooManyRequests if the network has had too many lookups.
   */
  async partitionOf(namespace: string, remoteAddress: string | undefined): Promise<string | undefined> {
    const { partitionOf, lookUp } = this.#options
    const known = partitionOf(namespace)
    if (known !== undefined || nameErrors(namespace, 'dns1123Label').length > 0) return known
    const network = networkOf(remoteAddress)
    const ask = () => {
      if (!this.#mayLookUp(network)) throw tooManyLookUps(namespace)
      return lookUp(namespace)
    }
    // Each network for itself: who shares the result of another one's request would share its limit.
    await this.#unknown.get(`${network} ${namespace}`, ask, () => unknownTtlMs)
    return partitionOf(namespace)
  }

  #mayLookUp(network: string): boolean {
    const nowMs = this.#nowMs()
    const rate = this.#rates.get(network) ?? new TokenBucket('lookUpRate', lookUpRate, nowMs)
    this.#rates.delete(network)
    this.#rates.set(network, rate)
    if (this.#rates.size > maxNetworks) this.#rates.delete(this.#rates.keys().next().value as string)
    return rate.tryTake(nowMs)
  }
}

const tooManyLookUps = (namespace: string) =>
  new StatusError(
    'TooManyRequests',
    `namespace ${JSON.stringify(namespace)} of the token is not known to this gateway, and clients of this network have asked about too many of them: retry later`,
    { details: { retryAfterSeconds: 1 } },
  )
