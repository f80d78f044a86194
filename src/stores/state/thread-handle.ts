import { Worker } from 'node:worker_threads'
import type { StateDatabase } from './state-database.ts'
import { StateStoreError } from './state-store-error.ts'
import type { FromThread, StoreMethod, ThreadOptions, ToThread } from './store-thread.ts'

type Methods = { [M in StoreMethod]: StateDatabase[M] }

type Pending = { resolve: (value: unknown) => void; reject: (error: Error) => void; bytes: number }

/** The main thread's side: numbers the calls, matches the answers, bounds what waits (invariant 10). */
export class ThreadHandle {
  readonly #worker: Worker
  readonly #maxPendingBytes: number
  readonly #pending = new Map<number, Pending>()
  #pendingBytes = 0
  #lastId = 0
  #ended: StateStoreError | undefined
  #closing: Promise<void> | undefined

  static async start(options: ThreadOptions): Promise<ThreadHandle> {
    const thread = new ThreadHandle(options)
    await new Promise((resolve, reject) => thread.#pending.set(0, { resolve, reject, bytes: 0 }))
    thread.#idle()
    return thread
  }

  private constructor(options: ThreadOptions) {
    this.#maxPendingBytes = options.limits.pendingBytes
    // The compiler leaves URLs alone, so the built package must say .js itself.
    const script = import.meta.url.endsWith('.ts') ? './store-thread.ts' : './store-thread.js'
    this.#worker = new Worker(new URL(script, import.meta.url), { workerData: options, name: 'oarlock-state' })
    this.#worker.on('message', (answer: FromThread) => this.#settle(answer))
    this.#worker.on('error', cause => this.#end(new StateStoreError('Unavailable', `the state store's thread failed: ${cause}`, { cause })))
    this.#worker.on('exit', () => this.#end(new StateStoreError('Unavailable', 'the state store is closed')))
  }

  /** True once the thread has failed or was closed: every further call rejects. */
  get hasEnded(): boolean {
    return this.#ended !== undefined
  }

  call<M extends StoreMethod>(method: M, ...args: Parameters<Methods[M]>): Promise<ReturnType<Methods[M]>> {
    return this.#post(method, args, 0, []) as Promise<ReturnType<Methods[M]>>
  }

  /** A call that carries content: a copy of it is given to the thread, so the caller may reuse its buffer. */
  send<M extends StoreMethod>(bytes: Uint8Array, make: (copy: Uint8Array) => [M, Parameters<Methods[M]>]): Promise<ReturnType<Methods[M]>> {
    if (this.#pendingBytes + bytes.byteLength > this.#maxPendingBytes && this.#pendingBytes > 0) {
      const text = `${this.#pendingBytes} bytes wait for the disk, at most ${this.#maxPendingBytes} are allowed; try again`
      return Promise.reject(new StateStoreError('Overloaded', text))
    }
    const copy = new Uint8Array(bytes)
    const [method, args] = make(copy)
    return this.#post(method, args, copy.byteLength, [copy.buffer]) as Promise<ReturnType<Methods[M]>>
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    if (this.#ended === undefined) await this.call('close')
    await this.#worker.terminate()
  }

  #post(method: StoreMethod, args: readonly unknown[], bytes: number, transfer: ArrayBuffer[]): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended)
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#worker.postMessage({ id, method, args } satisfies ToThread, transfer)
      this.#pending.set(id, { resolve, reject, bytes })
      this.#pendingBytes += bytes
      this.#worker.ref()
    })
  }

  #settle(answer: FromThread): void {
    const call = this.#pending.get(answer.id)
    if (call === undefined) return
    this.#pending.delete(answer.id)
    this.#pendingBytes -= call.bytes
    this.#idle()
    if (answer.ok) call.resolve(answer.value)
    else call.reject(new StateStoreError(answer.code, answer.message, { cause: answer.cause }))
  }

  #idle(): void {
    // An open store alone keeps no process alive.
    if (this.#pending.size === 0) this.#worker.unref()
  }

  #end(error: StateStoreError): void {
    this.#ended ??= error
    for (const { reject } of this.#pending.values()) reject(this.#ended)
    this.#pending.clear()
    this.#pendingBytes = 0
  }
}
