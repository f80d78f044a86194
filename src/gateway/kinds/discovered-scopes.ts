import { type Client, type Clock, systemClock } from '../../kubernetes/client/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { tableOf } from './owned-kinds.ts'
import { readServedKinds } from './served-kinds.ts'

export type Scope = 'Namespaced' | 'Cluster'

/** Between the starts of two reads. */
const minIntervalMs = 1_000
/** A CRD may be deleted and created again with another scope. */
const maxAgeMs = 30_000
const readTimeoutMs = 5_000

/**
 * Scopes of all kinds, from the discovery of home. A kind that is not known is looked for again, at most once a second: a request for it waits for a
 * read that begins after it, so that a kind that exists is always found. What is known stays valid while home does not answer.
 */
export class DiscoveredScopes {
  readonly #client: Pick<Client, 'request'>
  readonly #clock: Clock
  #scopes: ReadonlyMap<string, Scope> | undefined
  #startedAtMs = Number.NEGATIVE_INFINITY
  /** A read that has not begun. */
  #next: Promise<void> | undefined

  /** @param client of home. */
  constructor(client: Pick<Client, 'request'>, clock: Clock = systemClock) {
    this.#client = client
    this.#clock = clock
  }

  /** Undefined: home has no such kind. @throws {StatusError} ServiceUnavailable if the kind is not known, and home does not answer. */
  async scopeOf(group: string, plural: string): Promise<Scope | undefined> {
    const table = tableOf({ group, plural })
    const known = this.#scopes?.get(table)
    if (known === undefined) await this.#readAgain()
    // The next request has what it finds; a failure is reported when a kind is missing.
    else if (this.#clock.nowMs() - this.#startedAtMs > maxAgeMs) this.#readAgain().catch(() => {})
    return known ?? this.#scopes?.get(table)
  }

  #readAgain(): Promise<void> {
    this.#next ??= this.#clock.sleep(Math.max(0, this.#startedAtMs + minIntervalMs - this.#clock.nowMs())).then(() => {
      this.#next = undefined
      this.#startedAtMs = this.#clock.nowMs()
      return this.#read()
    })
    return this.#next
  }

  async #read(): Promise<void> {
    try {
      this.#scopes = new Map((await readServedKinds(this.#client, readTimeoutMs)).map(kind => [tableOf(kind), kind.scope]))
    } catch (error) {
      throw new StatusError('ServiceUnavailable', `the kinds of home cannot be read: ${(error as Error).message}`, {
        ...{ cause: error, details: { retryAfterSeconds: 1 } },
      })
    }
  }
}
