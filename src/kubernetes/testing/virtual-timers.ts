import type { Timers } from '../controller/index.ts'

type VirtualTimer = { atMs: number; order: number; run: () => void }

/** Time that advances only on request: for queues, backoff, managers (`timers`) and everything else that takes {@link Timers}. */
export class VirtualTimers implements Timers {
  #nowMs = 0
  #order = 0
  readonly #due = new Set<VirtualTimer>()

  nowMs(): number {
    return this.#nowMs
  }

  after(delayMs: number, run: () => void): () => void {
    const due: VirtualTimer = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run }
    this.#due.add(due)
    return () => void this.#due.delete(due)
  }

  /** The number of pending callbacks. */
  get pending(): number {
    return this.#due.size
  }

  /** When the next callback is due; undefined if none is pending. */
  get nextMs(): number | undefined {
    return this.#next()?.atMs
  }

  /** Advances time without calling callbacks, as for a process that was stopped (SIGSTOP) for `ms`. */
  jump(ms: number): void {
    this.#nowMs += ms
  }

  /** Advances time by `ms`, calls each callback that becomes due in order, and lets promises settle after each. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms
    await settle()
    for (let next = this.#next(); next && next.atMs <= untilMs; next = this.#next()) {
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      this.#due.delete(next)
      next.run()
      await settle()
    }
    this.#nowMs = untilMs
  }

  #next(): VirtualTimer | undefined {
    let first: VirtualTimer | undefined
    for (const due of this.#due) {
      if (!first || due.atMs < first.atMs || (due.atMs === first.atMs && due.order < first.order)) first = due
    }
    return first
  }
}

/** One turn of the event loop: lets pending promise callbacks run. */
const settle = () => new Promise<void>(resolve => setImmediate(resolve))
