import { openFilesError, RequestThread } from '../../kubernetes/util/index.ts'
import { StacksWithFacts } from './stacks-with-facts.ts'
import type { StateDatabase } from './state-database.ts'
import { StateStoreError } from './state-store-error.ts'
import type { LockRequest, WriteRequest } from './state-types.ts'
import type { StoreMethod, StoreRequest, StoreResponse, ThreadOptions } from './store-thread.ts'

type Methods = { [M in StoreMethod]: StateDatabase[M] }

/** The main thread's side: sends the calls, limits the pending bytes (invariant 10), and converts failures to {@link StateStoreError}. */
export class ThreadHandle {
  readonly #thread: RequestThread<StoreRequest, StoreResponse>
  readonly #maxPendingBytes: number
  #pendingBytes = 0
  #ended: StateStoreError | undefined
  #closing: Promise<void> | undefined
  #stacks = new StacksWithFacts([])
  #openJournals = 0

  static async start(options: ThreadOptions): Promise<ThreadHandle> {
    const thread = new ThreadHandle(options)
    thread.#stacks = new StacksWithFacts((await thread.#request('open', [], 0)) as string[])
    return thread
  }

  private constructor(options: ThreadOptions) {
    this.#maxPendingBytes = options.limits.pendingBytes
    this.#thread = new RequestThread('stores/state/store-thread', {
      workerData: options,
      name: 'oarlock-state',
      onEnd: reason => {
        const { cause } = reason
        const reasonText = openFilesError(cause) ?? cause
        const message = cause === undefined ? 'the state store is closed' : `the thread of the state store failed: ${reasonText}`
        this.#ended ??= new StateStoreError('Unavailable', message, { cause })
      },
    })
  }

  /** True when the thread has failed or was closed: every further call rejects. */
  get hasEnded(): boolean {
    return this.#ended !== undefined
  }

  /** Of updates that have not completed, as of the last response. */
  get openJournals(): number {
    return this.#openJournals
  }

  /** Includes what the calls so far may have written. */
  get stacks(): StacksWithFacts {
    return this.#stacks
  }

  call<M extends StoreMethod>(method: M, ...args: Parameters<Methods[M]>): Promise<Awaited<ReturnType<Methods[M]>>> {
    return this.#request(method, args, 0) as Promise<Awaited<ReturnType<Methods[M]>>>
  }

  /** A call with content, which is copied to the thread, so that the caller may reuse its buffer. */
  send<M extends StoreMethod>(
    bytes: Uint8Array,
    createCall: (copy: Uint8Array) => [M, Parameters<Methods[M]>],
  ): Promise<ReturnType<Methods[M]>> {
    if (this.#pendingBytes + bytes.byteLength > this.#maxPendingBytes && this.#pendingBytes > 0) {
      const text = `${this.#pendingBytes} bytes are waiting for the disk, at most ${this.#maxPendingBytes} are allowed; retry later`
      return Promise.reject(new StateStoreError('Overloaded', text))
    }
    const copy = new Uint8Array(bytes)
    const [method, args] = createCall(copy)
    return this.#request(method, args, copy.byteLength, [copy.buffer]) as Promise<ReturnType<Methods[M]>>
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    if (this.#ended === undefined) await this.call('close')
    await this.#thread.terminate()
  }

  async #request(method: StoreRequest['method'], args: readonly unknown[], bytes: number, transfer?: ArrayBuffer[]): Promise<unknown> {
    if (this.#ended !== undefined) throw this.#ended
    const written = factsWrittenBy(method, args)
    if (written !== undefined) this.#stacks.add(written)
    this.#pendingBytes += bytes
    try {
      const response = await this.#thread.request({ method, args }, transfer).catch((reason: Error) => {
        throw this.#ended ?? reason
      })
      if (response.ok) {
        this.#openJournals = response.openJournals ?? this.#openJournals
        return response.value
      }
      throw new StateStoreError(response.code, response.message, { cause: response.cause })
    } finally {
      this.#pendingBytes -= bytes
    }
  }
}

/** The UID of the Stack that has something to find in its facts if the call is accepted. */
function factsWrittenBy(method: StoreRequest['method'], args: readonly unknown[]): string | undefined {
  const { stackUid, holder, kind } = (args[0] ?? {}) as Partial<LockRequest & WriteRequest>
  switch (method) {
    case 'lock':
      return holder?.kind === 'User' ? stackUid : undefined
    case 'appendJournal':
    case 'completeJournal':
      return stackUid
    case 'writeVersion':
      return kind === 'pulumi' ? stackUid : undefined
    default:
      return undefined
  }
}
