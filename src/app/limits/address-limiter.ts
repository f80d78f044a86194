import { isIPv6 } from 'node:net'
import { StatusError } from '../../kubernetes/object/index.ts'

export type AddressLimits = {
  /** Concurrent calls of all addresses; further ones wait. */
  concurrent: number
  /** Concurrent calls of one address; less than `concurrent`, so that others are served. */
  concurrentPerAddress: number
  /** Waiting calls of one address; the next one is rejected. */
  waitingPerAddress: number
  /** Waiting calls of all addresses; beyond it the newest call of the address with the most is rejected. */
  waiting: number
}

type Waiting = { start(): void; reject(error: StatusError): void }
type Queue = { readonly address: string; running: number; readonly waiting: Waiting[] }

/**
 * Limits what clients that are not authenticated yet make us do. Each address has a queue and the queues are served round-robin, so a
 * client with many requests delays mostly itself (invariant 10). Clients behind one proxy or NAT share a queue.
 */
export class AddressLimiter {
  readonly #limits: AddressLimits
  /** Those with a running or waiting call, in round-robin order. */
  readonly #queues = new Map<string, Queue>()
  #running = 0
  #waiting = 0

  constructor(limits: AddressLimits) {
    this.#limits = limits
  }

  /** @throws {StatusError} TooManyRequests if too many calls wait. */
  async run<Value>(remoteAddress: string | undefined, work: () => Promise<Value>): Promise<Value> {
    const address = networkOf(remoteAddress)
    const queue = this.#queues.get(address) ?? { address, running: 0, waiting: [] }
    this.#queues.set(address, queue)
    if (queue.waiting.length === 0 && this.#canStart(queue)) this.#start(queue)
    else await this.#wait(queue)
    try {
      return await work()
    } finally {
      this.#running--
      queue.running--
      if (queue.running === 0 && queue.waiting.length === 0) this.#queues.delete(address)
      this.#startWaiting()
    }
  }

  #canStart({ running }: Queue): boolean {
    return this.#running < this.#limits.concurrent && running < this.#limits.concurrentPerAddress
  }

  #start(queue: Queue): void {
    this.#running++
    queue.running++
    this.#queues.delete(queue.address)
    this.#queues.set(queue.address, queue)
  }

  async #wait(queue: Queue): Promise<void> {
    if (queue.waiting.length >= this.#limits.waitingPerAddress) throw tooManyRequests()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    queue.waiting.push({ start: resolve, reject })
    this.#waiting++
    if (this.#waiting > this.#limits.waiting) {
      const longest = [...this.#queues.values()].reduce((a, b) => (b.waiting.length > a.waiting.length ? b : a))
      this.#waiting--
      longest.waiting.pop()?.reject(tooManyRequests())
      if (longest.running === 0 && longest.waiting.length === 0) this.#queues.delete(longest.address)
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

/** An IPv6 client has a /64 network of addresses to itself. */
function networkOf(address = ''): string {
  if (!isIPv6(address) || address.includes('.')) return address
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? []
  const groups = head === '' ? [] : head.split(':')
  const last = tail ? tail.split(':') : []
  const all = tail === undefined ? groups : [...groups, ...Array<string>(8 - groups.length - last.length).fill('0'), ...last]
  return `${all.slice(0, 4).join(':')}::/64`
}

const tooManyRequests = () =>
  new StatusError('TooManyRequests', 'too many requests of clients that are not authenticated wait: retry later', {
    details: { retryAfterSeconds: 1 },
  })
