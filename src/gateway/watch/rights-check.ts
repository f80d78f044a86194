import type { Partition } from '../partition/index.ts'
import type { GatewayUser } from '../request/index.ts'

type Check = { readonly user: GatewayUser; readonly url: string; readonly done: PromiseWithResolvers<boolean> }

const maxChecks = 500
const collectMs = 20

/** Asks partitions whether users may still watch: the questions of a moment in one request to each partition (`/partition/rights` of the server). */
export class RightsCheck {
  readonly #waiting = new Map<Partition, Check[]>()
  readonly #user: GatewayUser

  /** `user`: as whom it is asked. */
  constructor(user: GatewayUser) {
    this.#user = user
  }

  /**
   * Whether the user may send a GET of the URL to the partition now.
   * @throws {StatusError} ServiceUnavailable if the partition does not answer.
   */
  isAllowed(partition: Partition, user: GatewayUser, url: string): Promise<boolean> {
    let waiting = this.#waiting.get(partition)
    if (!waiting) {
      waiting = []
      this.#waiting.set(partition, waiting)
      setTimeout(() => this.#send(partition), collectMs)
    }
    const done = Promise.withResolvers<boolean>()
    waiting.push({ user, url, done })
    return done.promise
  }

  #send(partition: Partition): void {
    const waiting = this.#waiting.get(partition) ?? []
    this.#waiting.delete(partition)
    for (let at = 0; at < waiting.length; at += maxChecks) void this.#ask(partition, waiting.slice(at, at + maxChecks))
  }

  async #ask(partition: Partition, checks: readonly Check[]): Promise<void> {
    try {
      const allowed = await partition.rights(
        this.#user,
        checks.map(({ user, url }) => ({ user, url })),
      )
      for (const [index, { done }] of checks.entries()) done.resolve(allowed[index] === true)
    } catch (error) {
      for (const { done } of checks) done.reject(error)
    }
  }
}
