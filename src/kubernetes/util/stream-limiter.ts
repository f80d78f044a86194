/** Each stream has two connections with buffers (invariant 10). */
const limits = { streams: 1_000, streamsPerUser: 100 }

/** Counts the open logs and streams of Pods. */
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

  /** Counts a stream. The returned function must be called when it ends; further calls do nothing. A text instead: why there are too many. */
  open(user: string): (() => void) | string {
    const own = this.#byUser.get(user) ?? 0
    const { streams, streamsPerUser } = this.#limits
    if (own >= streamsPerUser)
      return `too many streams: ${user} has ${streamsPerUser} open logs and streams of pods: end some, or retry later`
    if (this.#count >= streams) return `too many streams: the server has ${streams} open logs and streams of pods: end some, or retry later`
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
