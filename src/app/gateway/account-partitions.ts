import { StatusError } from '../../kubernetes/object/index.ts'
import { ClientLimiter, type ClientLimits, LimitExceededError, networkOf } from '../../kubernetes/util/index.ts'
import { ExpiringCache } from '../delegated-auth/expiring-cache.ts'

/** A namespace that no partition has is looked up again after this time. */
const unknownTtlMs = 1_000
const maxUnknown = 1_000
const lookUpLimits: ClientLimits = { concurrent: 16, concurrentPerClient: 4, waitingPerClient: 64, waiting: 1_024 }
/** RFC 1123, as Kubernetes requires of names of namespaces. */
const namespaceName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

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
 * home is asked about an unknown one; because the token is not verified yet, at a rate that is limited for each network of clients.
 */
export class AccountPartitions {
  readonly #options: AccountPartitionsOptions
  readonly #unknown: ExpiringCache<void>
  readonly #limiter = new ClientLimiter(lookUpLimits)

  constructor(options: AccountPartitionsOptions) {
    this.#options = options
    this.#unknown = new ExpiringCache({ maxEntries: maxUnknown, nowMs: options.nowMs })
  }

  /**
   * @returns undefined if no partition has the namespace.
   * @throws {StatusError} ServiceUnavailable if home does not answer, TooManyRequests while too many lookups of the network wait.
   */
  async partitionOf(namespace: string, remoteAddress: string | undefined): Promise<string | undefined> {
    const { partitionOf, lookUp } = this.#options
    const known = partitionOf(namespace)
    if (known !== undefined || !namespaceName.test(namespace)) return known
    const ask = () => this.#limiter.run(networkOf(remoteAddress), () => lookUp(namespace))
    try {
      await this.#unknown.get(namespace, ask, () => unknownTtlMs)
    } catch (cause) {
      if (!(cause instanceof LimitExceededError)) throw cause
      const message = `namespace ${JSON.stringify(namespace)} of the token is not known to this gateway, and too many lookups at home wait: retry later`
      throw new StatusError('TooManyRequests', message, { cause, details: { retryAfterSeconds: 1 } })
    }
    return partitionOf(namespace)
  }
}
