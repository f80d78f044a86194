import { RequestThread } from './worker-thread.ts'

export type LimitedThreadOptions = {
  /** Shown by debuggers and `top -H`. */
  readonly name: string
  /** A request that takes longer is aborted. */
  readonly timeoutMs: number
  /** Of the old generation; a small input can expand without bound. */
  readonly maxHeapMb: number
}

/** The thread ends after this long without a request. */
const idleMs = 30_000

/** The thread could not finish a request within its limits. */
export class ThreadLimitError extends Error {
  override readonly name = 'ThreadLimitError'
  /** What the request takes more of: `4 s`, or `256 MB of memory`. */
  readonly limit: string

  constructor(thread: string, limit: string, options?: ErrorOptions) {
    super(`a request to thread ${thread} takes more than ${limit}`, options)
    this.limit = limit
  }
}

/**
 * A {@link RequestThread} for work that would block the event loop, and may never end: with a limit of time and memory for each request.
 * A single allocation of more than 16 MB beyond the limit of memory aborts the whole process, so input that can have one needs a `LimitedProcess`.
 * It starts with the first request, ends when it is idle, and is replaced after a request that it could not finish.
 */
export class LimitedThread<Request, Response> {
  readonly #path: string
  readonly #options: LimitedThreadOptions
  #thread: RequestThread<Request, Response> | undefined
  #isBusy = false
  #idleTimer: NodeJS.Timeout | undefined
  /** Of the last thread. */
  #ending: Promise<void> = Promise.resolve()

  constructor(path: string, options: LimitedThreadOptions) {
    this.#path = path
    this.#options = options
  }

  /**
   * One request at a time: see `ClientLimiter`. Rejects when the thread has ended, so that two never need memory at the same time.
   * @throws {ThreadLimitError}, the reason of `signal`, or an error that the thread has thrown.
   */
  async request(request: Request, signal?: AbortSignal): Promise<Response> {
    if (this.#isBusy) throw new Error(`bug: thread ${this.#options.name} has a request already`)
    signal?.throwIfAborted()
    this.#isBusy = true
    clearTimeout(this.#idleTimer)
    const { timeoutMs, maxHeapMb, name } = this.#options
    let stopped: { readonly reason: unknown } | undefined
    const stop = (reason: unknown) => {
      stopped ??= { reason }
      this.#stop()
    }
    const abort = () => stop(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    const timer = setTimeout(() => stop(new ThreadLimitError(name, `${timeoutMs / 1_000} s`)), timeoutMs)
    try {
      this.#thread ??= new RequestThread(this.#path, { name, resourceLimits: { maxOldGenerationSizeMb: maxHeapMb } })
      return await this.#thread.request(request)
    } catch (error) {
      this.#stop()
      if (stopped) throw stopped.reason
      if (!isOutOfMemory(error)) throw error
      throw new ThreadLimitError(name, `${maxHeapMb} MB of memory`, { cause: error })
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      this.#isBusy = false
      if (this.#thread) this.#idleTimer = setTimeout(() => this.#stop(), idleMs).unref()
    }
  }

  /** Ends the thread, and with it a pending request. Resolves when it has ended. */
  async close(): Promise<void> {
    this.#stop()
    await this.#ending
  }

  #stop(): void {
    clearTimeout(this.#idleTimer)
    if (this.#thread) this.#ending = this.#thread.terminate()
    this.#thread = undefined
  }
}

const isOutOfMemory = (error: unknown): boolean =>
  ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'ERR_WORKER_OUT_OF_MEMORY'
