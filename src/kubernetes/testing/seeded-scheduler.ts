import { type Client, type RequestOptions, type Response, WrappedClient } from '../client/index.ts'
import { seededRandom } from './seeded-random.ts'

type Waiting = { name: string; go: () => void }

/**
 * Lets one task at a time take its next step, in an order that follows from a seed alone. Tasks say where they can be
 * interrupted with `await scheduler.step('name')`, or use a {@link client} whose requests are steps; a failing seed replays
 * the same interleaving, and {@link trace} says which it was.
 */
export class SeededScheduler {
  readonly #random: () => number
  readonly #waiting: Waiting[] = []
  readonly #trace: string[] = []
  /** Requests under way: nobody else gets a turn before they are answered. */
  readonly #underWay = new Set<Promise<unknown>>()

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
   * `client` for one task: each of its requests is a step `<task> <method> <path>` and is answered before anyone else gets a
   * turn. Give each of two reconciles one, and seeds find the order in which they harm each other. Watches pass as they are.
   */
  client(client: Client, task: string): Client {
    return new SteppingClient(client, async (options, send) => {
      await this.step(`${task} ${options.method} ${options.path}`)
      const answer = send()
      const settled = answer.catch(() => undefined)
      this.#underWay.add(settled)
      void settled.then(() => this.#underWay.delete(settled))
      return await answer
    })
  }

  /**
   * Runs the tasks until all have ended, and rejects with the first error. Between two steps only promises, immediate
   * callbacks and requests of a {@link client} may be awaited, no other timers or I/O: those have an order of their own.
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
      await Promise.all(this.#underWay)
      await new Promise<void>(resolve => setImmediate(resolve))
      if (this.#waiting.length === 0 || this.#underWay.size > 0) continue
      const [next] = this.#waiting.splice(Math.floor(this.#random() * this.#waiting.length), 1)
      this.#trace.push((next as Waiting).name)
      next?.go()
    }
    if (errors.length > 0) throw errors[0]
  }
}

type Step = (options: RequestOptions, send: () => Promise<Response>) => Promise<Response>

class SteppingClient extends WrappedClient {
  readonly #step: Step

  constructor(client: Client, step: Step) {
    super(client)
    this.#step = step
  }

  override request(options: RequestOptions): Promise<Response> {
    return this.#step(options, () => this.inner.request(options))
  }

  /** Left to the owner of the real client. */
  override async close(): Promise<void> {}
}
