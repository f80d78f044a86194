import { seededRandom } from './seeded-random.ts'

type Waiting = { name: string; go: () => void }

/**
 * Lets one task at a time take its next step, in an order that follows from a seed alone. Tasks say where they can be
 * interrupted with `await scheduler.step('name')`; a failing seed replays the same interleaving, and {@link trace} says
 * which it was.
 */
export class SeededScheduler {
  readonly #random: () => number
  readonly #waiting: Waiting[] = []
  readonly #trace: string[] = []

  constructor(seed: number) {
    this.#random = seededRandom(seed)
  }

  /** The steps in the order they were let through. */
  get trace(): readonly string[] {
    return this.#trace
  }

  /** Waits for this task's turn. */
  step(name: string): Promise<void> {
    return new Promise(resolve => this.#waiting.push({ name, go: resolve }))
  }

  /**
   * Runs the tasks until all have ended, and rejects with the first error. Between two steps only promises and immediate
   * callbacks may be awaited, no timers or I/O: those have an order of their own.
   */
  async run(tasks: readonly (() => Promise<unknown>)[]): Promise<void> {
    let left = tasks.length
    const errors: unknown[] = []
    for (const task of tasks) {
      task()
        .catch(error => errors.push(error))
        .finally(() => left--)
    }
    while (left > 0) {
      await new Promise<void>(resolve => setImmediate(resolve))
      if (this.#waiting.length === 0) continue
      const [next] = this.#waiting.splice(Math.floor(this.#random() * this.#waiting.length), 1)
      this.#trace.push((next as Waiting).name)
      next?.go()
    }
    if (errors.length > 0) throw errors[0]
  }
}
