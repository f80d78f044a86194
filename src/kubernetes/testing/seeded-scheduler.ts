import { type Client, type RequestOptions, type Response, WrappedClient } from '../client/index.ts'
import { seededRandom } from '../util/index.ts'

type PausedTask = { name: string; resume: () => void }

/**
 * Runs one step of one task at a time, in an order that follows from a seed alone. Tasks mark their interruption points with
 * `await scheduler.step('name')`, or use a {@link client} whose requests are steps. A failing seed replays the same
 * interleaving, which {@link trace} records.
 */
export class SeededScheduler {
  readonly #random: () => number
  readonly #paused: PausedTask[] = []
  readonly #trace: string[] = []
  /** Requests in flight: no other task runs before their responses. */
  readonly #inFlight = new Set<Promise<unknown>>()

  constructor(seed: number) {
    this.#random = seededRandom(seed)
  }

  /** The names of the executed steps, in order. */
  get trace(): readonly string[] {
    return this.#trace
  }

  /** Waits until the scheduler selects this task. */
  step(name: string): Promise<void> {
    return new Promise(resolve => this.#paused.push({ name, resume: resolve }))
  }

  /**
   * A client for one task: each of its requests is a step `<task> <method> <path>`, and no other task runs before its
   * response. With one client for each of two reconciles, seeds find the orders in which they conflict. Watches are not steps.
   */
  client(client: Client, task: string): Client {
    return new SteppingClient(client, async (options, send) => {
      await this.step(`${task} ${options.method} ${options.path}`)
      const response = send()
      const settled = response.catch(() => undefined)
      this.#inFlight.add(settled)
      void settled.then(() => this.#inFlight.delete(settled))
      return await response
    })
  }

  /**
   * Runs the tasks to their end, and rejects with the first error. Between two steps, tasks may await only promises,
   * immediate callbacks and requests of a {@link client}; other timers and I/O have an order of their own.
   */
  async run(tasks: readonly (() => Promise<unknown>)[]): Promise<void> {
    let remaining = tasks.length
    const errors: unknown[] = []
    for (const task of tasks) {
      task()
        .catch(error => errors.push(error))
        .finally(() => remaining--)
    }
    while (remaining > 0) {
      await Promise.all(this.#inFlight)
      await new Promise<void>(resolve => setImmediate(resolve))
      if (this.#paused.length === 0 || this.#inFlight.size > 0) continue
      const [next] = this.#paused.splice(Math.floor(this.#random() * this.#paused.length), 1)
      this.#trace.push((next as PausedTask).name)
      next?.resume()
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
