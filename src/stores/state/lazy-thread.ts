import { StateStoreError } from './state-store-error.ts'
import type { StoreMethod, ThreadOptions } from './store-thread.ts'
import { ThreadHandle } from './thread-handle.ts'

/**
 * The store's thread, only there while there is work: nothing is idle. A thread costs about 30 MB of RSS, and a
 * thousand Stacks that stand still need none. The next call starts it again (some 90 ms, once).
 * A thread that failed is replaced by the next call too: what it had acknowledged is on disk (invariant 5).
 */
export class LazyThread {
  readonly #options: ThreadOptions
  readonly #restAfterMs: number
  #thread: ThreadHandle | undefined
  #starting: Promise<ThreadHandle> | undefined
  /** The file is locked until the thread before has let it go. */
  #ending: Promise<void> = Promise.resolve()
  #calls = 0
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  /** Starts the thread once, so that a wrong key or a damaged file is known at once. */
  static async start(options: ThreadOptions, restAfterMs: number): Promise<LazyThread> {
    const thread = new LazyThread(options, restAfterMs)
    await thread.#during(async () => undefined)
    return thread
  }

  private constructor(options: ThreadOptions, restAfterMs: number) {
    this.#options = options
    this.#restAfterMs = restAfterMs
  }

  call: ThreadHandle['call'] = (method, ...args) => this.#during(thread => thread.call(method, ...args))

  /** As {@link ThreadHandle.send}: the bytes are copied before this returns, so the caller may reuse its buffer. */
  send<M extends StoreMethod>(bytes: Uint8Array, make: Parameters<typeof ThreadHandle.prototype.send<M>>[1]) {
    const own = this.#thread?.hasEnded === false ? bytes : new Uint8Array(bytes)
    return this.#during(thread => thread.send(own, make))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#starting?.catch(() => undefined)
    this.#rest()
    await this.#ending
  }

  #during<T>(work: (thread: ThreadHandle) => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StateStoreError('Unavailable', 'the state store is closed'))
    clearTimeout(this.#timer)
    this.#calls++
    // A running thread is called in this very turn: the order of calls is the order of writes.
    const result = this.#thread?.hasEnded === false ? work(this.#thread) : this.#start().then(work)
    return result.finally(() => {
      if (--this.#calls === 0 && !this.#isClosed) this.#timer = setTimeout(() => this.#rest(), this.#restAfterMs).unref()
    })
  }

  #start(): Promise<ThreadHandle> {
    this.#starting ??= this.#ending
      .then(() => ThreadHandle.start(this.#options))
      .then(thread => {
        this.#thread = thread
        return thread
      })
      .finally(() => {
        this.#starting = undefined
      })
    return this.#starting
  }

  #rest(): void {
    const thread = this.#thread
    if (thread === undefined) return
    this.#thread = undefined
    this.#ending = thread.close().catch(() => undefined)
  }
}
