import { coerceError, systemTimers, type Timers } from '../../kubernetes/util/index.ts'

export type RetriedTaskOptions = {
  work(): Promise<void>
  /** Called for each failure. */
  onError(error: Error): void
  retryMs: number
  /** It is not called again after this aborts. */
  signal: AbortSignal
  timers?: Timers | undefined
}

/**
 * Repeats a task that failed. At most one call runs and at most one retry is scheduled, however often it is requested; `failure` is that of the last
 * call, and a successful one clears it.
 */
export class RetriedTask {
  readonly #options: RetriedTaskOptions
  #running: Promise<void> | undefined
  #isRequested = false
  #cancelRetry: (() => void) | undefined
  #failure: Error | undefined

  constructor(options: RetriedTaskOptions) {
    this.#options = options
    options.signal.addEventListener('abort', () => this.#cancelRetry?.(), { once: true })
  }

  get failure(): Error | undefined {
    return this.#failure
  }

  /** Resolves when no call runs; immediately while it only waits for a retry. */
  get idle(): Promise<void> {
    return this.#running ?? Promise.resolve()
  }

  /** Calls the task now, or again after the call that runs. */
  request(): void {
    if (this.#options.signal.aborted) return
    this.#isRequested = true
    this.#running ??= this.#run()
  }

  async #run(): Promise<void> {
    while (this.#isRequested && !this.#options.signal.aborted) {
      this.#isRequested = false
      this.#cancelRetry?.()
      this.#cancelRetry = undefined
      await this.#call()
    }
    this.#running = undefined
  }

  async #call(): Promise<void> {
    const { work, onError, retryMs, signal, timers = systemTimers } = this.#options
    try {
      await work()
      this.#failure = undefined
    } catch (error) {
      this.#failure = coerceError(error)
      if (signal.aborted) return
      onError(this.#failure)
      this.#cancelRetry = timers.after(retryMs, () => this.request())
    }
  }
}
