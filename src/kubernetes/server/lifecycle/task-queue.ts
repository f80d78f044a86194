import { type Timers, WorkQueue } from '../../util/index.ts'

const concurrency = 64
const baseDelayMs = 100
const maxDelayMs = 30_000

type Task = () => Promise<void>

/**
 * Runs tasks by key on a {@link WorkQueue}: a key never runs twice at the same time, and a task that is added while its key runs
 * runs afterwards (invariant 7). At most 64 tasks run at the same time. A task that throws is retried after 100 ms, doubling up to 30 s.
 */
export class TaskQueue {
  readonly #queue: WorkQueue
  /** The newest task of each key that waits. */
  readonly #tasks = new Map<string, Task>()
  readonly #workers: readonly Promise<void>[]
  readonly #onError: (error: unknown, key: string) => void

  constructor(onError: (error: unknown, key: string) => void, timers?: Timers) {
    this.#onError = onError
    this.#queue = new WorkQueue({ baseDelayMs, maxDelayMs, timers })
    this.#workers = Array.from({ length: concurrency }, () => this.#work())
  }

  add(key: string, task: Task): void {
    this.#tasks.set(key, task)
    this.#queue.add(key)
  }

  /** Waits for the tasks that run and drops the others. */
  async stop(): Promise<void> {
    this.#queue.shutdown()
    await Promise.all(this.#workers)
    this.#tasks.clear()
  }

  async #work(): Promise<void> {
    for (let key = await this.#queue.get(); key !== undefined; key = await this.#queue.get()) {
      const task = this.#tasks.get(key) as Task
      this.#tasks.delete(key)
      try {
        await task()
        this.#queue.forget(key)
      } catch (error) {
        this.#onError(error, key)
        if (!this.#tasks.has(key)) this.#tasks.set(key, task)
        this.#queue.addRateLimited(key)
      }
      this.#queue.done(key)
    }
  }
}
