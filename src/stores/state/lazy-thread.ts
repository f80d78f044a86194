import { StateStoreError } from './state-store-error.ts'
import type { StoreMethod, ThreadOptions } from './store-thread.ts'
import { ThreadHandle } from './thread-handle.ts'

/**
 * The store's thread, which runs only while there are calls. A thread costs about 30 MB of RSS, and a thousand idle Stacks need
 * none. The next call starts it again, which takes about 90 ms.
 * The next call also replaces a thread that failed: what it had acknowledged is on disk (invariant 5).
 */
export class LazyThread {
  readonly #options: ThreadOptions
  readonly #idleTimeoutMs: number
  #thread: ThreadHandle | undefined
  #starting: Promise<ThreadHandle> | undefined
  /** The file is locked until the previous thread has closed it. */
  #ending: Promise<void> = Promise.resolve()
  #calls = 0
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  /** When the last thread was closed. */
  #openJournals = 0

  /** Starts the thread once, so that a wrong key or a corrupt file is reported immediately. */
  static async start(options: ThreadOptions, idleTimeoutMs: number): Promise<LazyThread> {
    const thread = new LazyThread(options, idleTimeoutMs)
    await thread.withThread(async () => undefined)
    return thread
  }

  private constructor(options: ThreadOptions, idleTimeoutMs: number) {
    this.#options = options
    this.#idleTimeoutMs = idleTimeoutMs
  }

  /** Undefined while there is none: what is known of the file counts only as long as the thread has it open. */
  get running(): ThreadHandle | undefined {
    return this.#thread?.hasEnded === false ? this.#thread : undefined
  }

  /** Of updates that have not completed. Known without a thread: the file changes only while there is one. */
  get openJournals(): number {
    return this.#thread?.openJournals ?? this.#openJournals
  }

  /** Counts as a call for the idle timeout: a thread that would soon be started again is kept. */
  keepRunning(): void {
    this.#timer?.refresh()
  }

  call: ThreadHandle['call'] = (method, ...args) => this.withThread(thread => thread.call(method, ...args))

  /** As {@link ThreadHandle.send}: the bytes are copied before this returns, so the caller may reuse its buffer. */
  send<M extends StoreMethod>(bytes: Uint8Array, createCall: Parameters<typeof ThreadHandle.prototype.send<M>>[1]) {
    const copy = this.running ? bytes : new Uint8Array(bytes)
    return this.withThread(thread => thread.send(copy, createCall))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#starting?.catch(() => undefined)
    this.#stop()
    await this.#ending
  }

  /** Calls `work`, which sends the calls, with the running thread, or when it has started. */
  withThread<T>(work: (thread: ThreadHandle) => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StateStoreError('Unavailable', 'the state store is closed'))
    clearTimeout(this.#timer)
    this.#calls++
    // A running thread is called synchronously: the order of calls is the order of writes.
    const { running } = this
    const result = running ? work(running) : this.#start().then(work)
    return result.finally(() => {
      if (--this.#calls === 0 && !this.#isClosed) this.#timer = setTimeout(() => this.#stop(), this.#idleTimeoutMs).unref()
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

  #stop(): void {
    const thread = this.#thread
    if (thread === undefined) return
    this.#openJournals = thread.openJournals
    this.#thread = undefined
    this.#ending = thread.close().catch(() => undefined)
  }
}
