import { StatusError } from '../../object/index.ts'

/** Each stream has two connections with buffers (invariant 10). */
const limits = { streams: 1_000, streamsPerUser: 100 }

/** Counts the open streams to kubelets. */
export class StreamLimiter {
  readonly #limits: typeof limits
  readonly #byUser = new Map<string, number>()
  #count = 0

  constructor(of: Partial<typeof limits> = {}) {
    this.#limits = { ...limits, ...of }
  }

  get size(): number {
    return this.#count
  }

  /**
   * Counts a stream. The returned function must be called when it ends; further calls do nothing.
   * @throws {StatusError} TooManyRequests.
   */
  open(user: string): () => void {
    const own = this.#byUser.get(user) ?? 0
    const { streams, streamsPerUser } = this.#limits
    if (own >= streamsPerUser) throw tooMany(`${user} has ${streamsPerUser} open logs and streams of pods`)
    if (this.#count >= streams) throw tooMany(`the server has ${streams} open logs and streams of pods`)
    this.#byUser.set(user, own + 1)
    this.#count++
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      this.#count--
      const left = (this.#byUser.get(user) ?? 1) - 1
      if (left === 0) this.#byUser.delete(user)
      else this.#byUser.set(user, left)
    }
  }
}

const tooMany = (why: string) =>
  new StatusError('TooManyRequests', `too many streams: ${why}: end some, or retry later`, { details: { retryAfterSeconds: 1 } })
