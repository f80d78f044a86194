import { StatusError } from '../../kubernetes/object/index.ts'

export type BodyMemoryOptions = {
  /** Of the requests of one user; the ServiceAccounts of a namespace count as one. Default 32 MiB. */
  readonly bytesPerUser: number
  /** Of all requests. Default 512 MiB. */
  readonly bytes: number
}

const defaults: BodyMemoryOptions = { bytesPerUser: 32 * 1024 * 1024, bytes: 512 * 1024 * 1024 }
const retryAfterSeconds = 1

/**
 * Counts the bodies that a gateway holds: each is read whole before the rights of its sender are known, and stays until the partition has answered, so that clients
 * that send slowly could use up the memory.
 */
export class BodyMemory {
  readonly #options: BodyMemoryOptions
  readonly #byUser = new Map<string, number>()
  #bytes = 0

  constructor(options: Partial<BodyMemoryOptions> = {}) {
    this.#options = { ...defaults, ...options }
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Of one request of the user: `add` counts what has arrived, `release` must be called when the request has ended. */
  open(user: string): { add(bytes: number): void; release(): void } {
    const key = /^system:serviceaccount:[^:]+:/.exec(user)?.[0] ?? user
    let held = 0
    let isOver = false
    return {
      /** @throws {StatusError} TooManyRequests. */
      add: bytes => {
        if (isOver) return
        const own = (this.#byUser.get(key) ?? 0) + bytes
        if (own > this.#options.bytesPerUser) throw tooMuch(`requests of ${JSON.stringify(user)}`, this.#options.bytesPerUser)
        if (this.#bytes + bytes > this.#options.bytes) throw tooMuch('all requests', this.#options.bytes)
        this.#byUser.set(key, own)
        this.#bytes += bytes
        held += bytes
      },
      release: () => {
        if (isOver) return
        isOver = true
        this.#bytes -= held
        const left = (this.#byUser.get(key) ?? 0) - held
        if (left > 0) this.#byUser.set(key, left)
        else this.#byUser.delete(key)
      },
    }
  }
}

const tooMuch = (of: string, limit: number) =>
  new StatusError(
    'TooManyRequests',
    `the bodies of ${of} in progress have ${limit / 1024 / 1024} MiB, as many as this gateway allows: retry later`,
    {
      details: { retryAfterSeconds },
    },
  )
