/** A thread or process that answers one request at a time, with a limit of memory. */
export type LimitedExecutor<Request, Response> = {
  /** Whether it answers no more requests. */
  readonly hasEnded: boolean
  /** Rejects with a {@link RequestLimitError} if it has ended because of its memory, with another error if for another reason, or with what responding has thrown. */
  request(request: Request): Promise<Response>
  /** Ends it. Resolves when it has ended. */
  end(): Promise<unknown>
}

export type LimitedRequestsOptions = {
  /** Shown by debuggers, `top -H` and `ps`. */
  readonly name: string
  /** A request that takes longer is aborted. */
  readonly timeoutMs: number
  /** Of the old generation; a small input can expand without bound. */
  readonly maxHeapMb: number
}

/** An executor ends after this long without a request. */
const idleMs = 30_000

/** An executor could not finish a request within its limits. */
export class RequestLimitError extends Error {
  override readonly name = 'RequestLimitError'
  /** What the request takes more of: `5 s`, or `256 MB of memory`. */
  readonly limit: string

  constructor(executor: string, limit: string, options?: ErrorOptions) {
    super(`a request to ${executor} takes more than ${limit}`, options)
    this.limit = limit
  }
}

/** Starts an executor with the first request, ends it when it is idle, and replaces it after a request that it could not finish. */
export class LimitedRequests<Request, Response> {
  readonly #options: LimitedRequestsOptions
  readonly #start: () => LimitedExecutor<Request, Response>
  #executor: LimitedExecutor<Request, Response> | undefined
  #isBusy = false
  #idleTimer: NodeJS.Timeout | undefined
  /** Of the last executor. */
  #ending: Promise<unknown> = Promise.resolve()

  constructor(options: LimitedRequestsOptions, start: () => LimitedExecutor<Request, Response>) {
    this.#options = options
    this.#start = start
  }

  /**
   * One request at a time: see `ClientLimiter`. Rejects when an executor that is replaced has ended, so that two never need memory at the same time.
   * @throws {RequestLimitError}, the reason of `signal`, or what responding has thrown.
   */
  async request(request: Request, signal?: AbortSignal): Promise<Response> {
    const { name, timeoutMs } = this.#options
    if (this.#isBusy) throw new Error(`bug: ${name} has a request already`)
    signal?.throwIfAborted()
    this.#isBusy = true
    clearTimeout(this.#idleTimer)
    if (this.#executor?.hasEnded) this.#stop()
    let stopped: { readonly reason: unknown } | undefined
    const stop = (reason: unknown) => {
      stopped ??= { reason }
      this.#stop()
    }
    const abort = () => stop(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    const timer = setTimeout(() => stop(new RequestLimitError(name, `${timeoutMs / 1_000} s`)), timeoutMs)
    try {
      this.#executor ??= this.#start()
      return await this.#executor.request(request)
    } catch (error) {
      throw stopped ? stopped.reason : error
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      this.#isBusy = false
      if (this.#executor?.hasEnded) this.#stop()
      if (this.#executor) this.#idleTimer = setTimeout(() => this.#stop(), idleMs).unref()
    }
  }

  /** Ends the executor, and with it a pending request. Resolves when it has ended. */
  async close(): Promise<void> {
    this.#stop()
    await this.#ending
  }

  #stop(): void {
    clearTimeout(this.#idleTimer)
    if (this.#executor) this.#ending = this.#executor.end()
    this.#executor = undefined
  }
}
