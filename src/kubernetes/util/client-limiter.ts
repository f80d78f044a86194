export type ClientLimits = {
  /** Concurrent calls of all clients; further ones wait. */
  concurrent: number
  /** Concurrent calls of one client; less than `concurrent`, so that others are served. */
  concurrentPerClient: number
  /** Waiting calls of one client; the next one is rejected. */
  waitingPerClient: number
  /** Waiting calls of all clients; beyond it the newest call of the client with the most is rejected. */
  waiting: number
}

type Waiting = { start(): void; reject(error: LimitExceededError): void }
type Queue = { readonly client: string; running: number; readonly waiting: Waiting[] }

/** Too many calls of a client wait: it may try again in a second. */
export class LimitExceededError extends Error {
  override readonly name = 'LimitExceededError'
}

/**
 * Limits the concurrent calls of each client. Each has a queue and the queues are served round-robin, so a client with many calls delays
 * mostly itself (invariant 10). The server's `Fairness` is for requests that cost its own CPU time: it starts them by expected cost in each
 * iteration of the event loop. These calls wait for others, such as reviews of tokens, so only their number counts. A client is a user or, before it is authenticated, its network: clients behind one proxy or NAT share a queue.
 */
export class ClientLimiter {
  readonly #limits: ClientLimits
  /** Those with a running or waiting call, in round-robin order. */
  readonly #queues = new Map<string, Queue>()
  #running = 0
  #waiting = 0

  constructor(limits: ClientLimits) {
    this.#limits = limits
  }

  /** @throws {LimitExceededError} if too many calls wait. */
  async run<Value>(client: string, work: () => Promise<Value>): Promise<Value> {
    const queue = this.#queues.get(client) ?? { client, running: 0, waiting: [] }
    this.#queues.set(client, queue)
    if (queue.waiting.length === 0 && this.#canStart(queue)) this.#start(queue)
    else await this.#wait(queue)
    try {
      return await work()
    } finally {
      this.#running--
      queue.running--
      if (queue.running === 0 && queue.waiting.length === 0) this.#queues.delete(client)
      this.#startWaiting()
    }
  }

  #canStart({ running }: Queue): boolean {
    return this.#running < this.#limits.concurrent && running < this.#limits.concurrentPerClient
  }

  #start(queue: Queue): void {
    this.#running++
    queue.running++
    this.#queues.delete(queue.client)
    this.#queues.set(queue.client, queue)
  }

  async #wait(queue: Queue): Promise<void> {
    if (queue.waiting.length >= this.#limits.waitingPerClient) throw tooManyCalls()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    queue.waiting.push({ start: resolve, reject })
    this.#waiting++
    if (this.#waiting > this.#limits.waiting) {
      const longest = [...this.#queues.values()].reduce((a, b) => (b.waiting.length > a.waiting.length ? b : a))
      this.#waiting--
      longest.waiting.pop()?.reject(tooManyCalls())
      if (longest.running === 0 && longest.waiting.length === 0) this.#queues.delete(longest.client)
    }
    await promise
  }

  #startWaiting(): void {
    while (this.#waiting > 0) {
      const queue = this.#queues.values().find(each => each.waiting.length > 0 && this.#canStart(each))
      const next = queue?.waiting.shift()
      if (!queue || !next) return
      this.#waiting--
      this.#start(queue)
      next.start()
    }
  }
}

const tooManyCalls = () => new LimitExceededError('too many requests of this client wait: retry later')
