import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import type { Partition, PartitionRequest } from './partition.ts'

/** A home that is paused accepts connections and does not answer: clients wait for discovery no longer than this. */
const homeTimeoutMs = 3_000
/** Then the others are asked first for so long. */
const avoidHomeMs = 10_000

export type HomeOrCopyOptions = {
  home(): string
  /** The partitions that serve the same kinds, and have the same roles. */
  copies(): readonly string[]
  /** @throws {StatusError} ServiceUnavailable if it has no address. */
  connectionOf(partition: string): Partition
  /** A monotonic clock in milliseconds. Default `performance.now`. */
  nowMs?(): number
}

/**
 * Sends what home answers and every partition with the same kinds could: discovery, OpenAPI, the version, and reviews of what a user may do. While
 * home does not answer, one of these answers in its place, so that clients find the kinds whose objects are in partitions that work.
 */
export class HomeOrCopy {
  readonly #options: HomeOrCopyOptions
  #avoidUntilMs = Number.NEGATIVE_INFINITY

  constructor(options: HomeOrCopyOptions) {
    this.#options = options
  }

  /**
   * The request must change nothing, because several partitions may get it.
   * @throws {StatusError} ServiceUnavailable naming home, if no partition answers.
   */
  async send(request: PartitionRequest): Promise<{ readonly partition: string; readonly answer: TransportStreamResponse }> {
    const { home, copies, connectionOf, nowMs = () => performance.now() } = this.#options
    const [own, others] = [home(), copies()]
    const isAvoided = others.length > 0 && nowMs() < this.#avoidUntilMs
    let unavailable: unknown
    for (const partition of isAvoided ? [...others, own] : [own, ...others]) {
      try {
        const timeoutMs = others.length > 0 ? homeTimeoutMs : undefined
        const answer = await connectionOf(partition).send({ ...request, timeoutMs })
        if (partition === own) this.#avoidUntilMs = Number.NEGATIVE_INFINITY
        return { partition, answer }
      } catch (error) {
        if (!isReason(error, 'ServiceUnavailable')) throw error
        if (partition === own) {
          this.#avoidUntilMs = nowMs() + avoidHomeMs
          unavailable = error
        }
        unavailable ??= error
      }
    }
    throw unavailable
  }
}
