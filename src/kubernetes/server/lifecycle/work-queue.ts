const maxRunning = 64
const firstRetryMs = 100
const maxRetryMs = 30_000

type Task = () => Promise<void>

/**
 * Tasks by key: a key never runs twice at once, and one that is added while it runs, runs again (invariant 7).
 * A task that throws is tried again after a pause that doubles up to 30 s.
 */
export class WorkQueue {
  readonly #waiting = new Map<string, Task>()
  readonly #running = new Set<string>()
  readonly #again = new Map<string, Task>()
  readonly #retries = new Map<string, { timer: NodeJS.Timeout; delayMs: number }>()
  readonly #onError: (error: unknown, key: string) => void
  #isStopped = false
  #idle: (() => void) | undefined

  constructor(onError: (error: unknown, key: string) => void) {
    this.#onError = onError
  }

  add(key: string, task: Task): void {
    if (this.#isStopped) return
    if (this.#running.has(key)) {
      this.#again.set(key, task)
      return
    }
    this.#waiting.set(key, task)
    if (this.#running.size < maxRunning) this.#next()
  }

  /** Lets running tasks end and forgets the others. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#waiting.clear()
    this.#again.clear()
    for (const { timer } of this.#retries.values()) clearTimeout(timer)
    this.#retries.clear()
    if (this.#running.size > 0) await new Promise<void>(resolve => (this.#idle = resolve))
  }

  #next(): void {
    for (const [key, task] of this.#waiting) {
      this.#waiting.delete(key)
      this.#running.add(key)
      void this.#run(key, task)
      return
    }
  }

  async #run(key: string, task: Task): Promise<void> {
    try {
      await task()
      this.#retries.delete(key)
    } catch (error) {
      this.#onError(error, key)
      this.#retry(key, task)
    }
    this.#running.delete(key)
    const again = this.#again.get(key)
    if (again) {
      this.#again.delete(key)
      this.add(key, again)
    }
    this.#next()
    if (this.#running.size === 0) this.#idle?.()
  }

  #retry(key: string, task: Task): void {
    if (this.#isStopped) return
    const delayMs = Math.min(maxRetryMs, (this.#retries.get(key)?.delayMs ?? firstRetryMs / 2) * 2)
    const timer = setTimeout(() => this.add(key, task), delayMs)
    timer.unref()
    this.#retries.set(key, { timer, delayMs })
  }
}
