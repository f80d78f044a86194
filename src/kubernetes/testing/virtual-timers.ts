import type { Timers } from '../controller/index.ts'

type Due = { atMs: number; order: number; run: () => void }

/** Time that stands still until the test moves it: for queues, backoff, managers (`timers`) and whatever takes {@link Timers}. */
export class VirtualTimers implements Timers {
  #nowMs = 0
  #order = 0
  readonly #due = new Set<Due>()

  nowMs(): number {
    return this.#nowMs
  }

  after(delayMs: number, run: () => void): () => void {
    const due: Due = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run }
    this.#due.add(due)
    return () => void this.#due.delete(due)
  }

  /** How many callbacks wait. */
  get pending(): number {
    return this.#due.size
  }

  /** When the next callback is due; undefined if none waits. */
  get nextMs(): number | undefined {
    return this.#next()?.atMs
  }

  /** Moves time on by `ms`, calling what becomes due in its order and letting promises settle after each. */
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

  #next(): Due | undefined {
    let first: Due | undefined
    for (const due of this.#due) {
      if (!first || due.atMs < first.atMs || (due.atMs === first.atMs && due.order < first.order)) first = due
    }
    return first
  }
}

/** One turn of the event loop: every promise that can settle by itself has. */
const settle = () => new Promise<void>(resolve => setImmediate(resolve))
