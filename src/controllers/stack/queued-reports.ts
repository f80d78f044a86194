import type { TokenRate } from '../../kubernetes/util/index.ts'
import { TokenBucket } from '../../kubernetes/util/index.ts'

export type QueuedReportsOptions = {
  readonly rate: TokenRate
  /** Has the Stack with this key decided again; {@link QueuedReports.mayReport} is true for it then. */
  readonly reconcile: (key: string) => void
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number
  /** Calls `action` after `ms` milliseconds. */
  readonly schedule: (action: () => void, ms: number) => void
}

/**
 * Spreads the reports that the Run of a Stack waits in the queue, which are most of the writes when thousands of Stacks change at the same time. The newest is
 * reported first: a user who has just changed a Stack sees it immediately, and the Runs at the front of the queue, which are the oldest, start before it is their turn.
 */
export class QueuedReports {
  readonly #options: QueuedReportsOptions
  readonly #bucket: TokenBucket
  readonly #due = new Set<string>()
  /** Of {@link #due} and of keys that are not due any more, the newest last. */
  #order: string[] = []
  readonly #granted = new Set<string>()
  #isScheduled = false

  constructor(options: QueuedReportsOptions) {
    this.#options = options
    this.#bucket = new TokenBucket('rate', options.rate, options.nowMs())
  }

  /** Whether the report of this Stack is to be written now. */
  mayReport(key: string): boolean {
    return this.#granted.has(key)
  }

  /** The report of this Stack is due. */
  add(key: string): void {
    if (this.#due.has(key) || this.#granted.has(key)) return
    this.#due.add(key)
    this.#order.push(key)
    this.#grant()
  }

  /** It is reported, or no longer of interest. */
  delete(key: string): void {
    this.#granted.delete(key)
    // Otherwise those that got a worker would remain in the order for as long as newer ones are due.
    if (this.#due.delete(key) && this.#order.length > 2 * this.#due.size + 16) this.#order = [...this.#due]
  }

  #grant(): void {
    const { nowMs, schedule } = this.#options
    while (this.#due.size > 0 && !this.#isScheduled) {
      const inMs = this.#bucket.reserve(nowMs())
      if (inMs === 0) this.#grantNewest()
      else {
        this.#isScheduled = true
        schedule(() => {
          this.#isScheduled = false
          this.#grantNewest()
          this.#grant()
        }, inMs)
      }
    }
  }

  #grantNewest(): void {
    for (let key = this.#order.pop(); key !== undefined; key = this.#order.pop()) {
      if (!this.#due.delete(key)) continue
      this.#granted.add(key)
      this.#options.reconcile(key)
      return
    }
  }
}
