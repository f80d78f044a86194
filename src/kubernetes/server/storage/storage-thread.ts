import type { Worker } from 'node:worker_threads'
import { StatusError } from '../../object/index.ts'
import { startThread } from '../../util/index.ts'
import type {
  CommitBatch,
  FromStorageThread,
  KeyRotation,
  ReadyMessage,
  RowsBatch,
  StorageThreadOptions,
  Task,
  ToStorageThread,
} from './protocol.ts'
import { ServerStartError } from './start-error.ts'

export type StorageThreadHandlers = {
  onRows(batch: RowsBatch): void
  onCommitted(durationMs: number): void
  /** The batch was rolled back; nothing of it is stored. `errcode` is SQLite's, 0 for other errors. */
  onCommitFailed(errcode: number, message: string): void
  /** The thread failed, or ended without {@link StorageThread.close}: nothing can be stored any more. May be called twice. */
  onFailure(reason: string): void
}

/** The main thread's side of `commit-worker.ts`, which owns the database file. One commit and one {@link Task} at a time. */
export class StorageThread {
  readonly #worker: Worker
  #closed: (() => void) | undefined
  #task: PromiseWithResolvers<KeyRotation | undefined> | undefined
  /** Resolves when every row was passed to `onRows`. Rejects with a {@link ServerStartError} when the database cannot be opened. */
  readonly ready: Promise<ReadyMessage>

  constructor(options: Omit<StorageThreadOptions, 'loadedBatches'>, handlers: StorageThreadHandlers) {
    const loadedBatches = new Int32Array(new SharedArrayBuffer(4))
    const workerData: StorageThreadOptions = { ...options, loadedBatches }
    const worker = startThread('kubernetes/server/storage/commit-worker', {
      workerData,
      name: 'oarlock-store',
      resourceLimits: { maxYoungGenerationSizeMb: 2 },
    })
    this.#worker = worker
    const { promise, resolve, reject } = Promise.withResolvers<ReadyMessage>()
    this.ready = promise
    worker.on('message', (message: FromStorageThread) => {
      switch (message.type) {
        case 'rows':
          handlers.onRows(message)
          Atomics.add(loadedBatches, 0, 1)
          Atomics.notify(loadedBatches, 0)
          return
        case 'ready':
          resolve(message)
          return
        case 'startFailed':
          reject(new ServerStartError(message.code, message.message))
          return
        case 'committed':
          handlers.onCommitted(message.durationMs)
          return
        case 'commitFailed':
          handlers.onCommitFailed(message.errcode, message.message)
          return
        case 'taskEnded':
          this.#endTask(message.error, message.rotation)
          return
      }
    })
    worker.on('error', (error: Error) => {
      handlers.onFailure(`the storage thread failed: ${error.message}`)
      reject(error)
    })
    worker.on('exit', () => {
      if (!this.#closed) handlers.onFailure('the storage thread ended')
      this.#endTask('the storage thread ended', undefined)
      this.#closed?.()
    })
  }

  commit(batch: CommitBatch): void {
    this.#post(batch)
  }

  async backUp(path: string): Promise<void> {
    await this.#run({ type: 'backup', path })
  }

  async rotateKey(removesOldKeys: boolean): Promise<KeyRotation> {
    return (await this.#run({ type: 'rotateKey', removesOldKeys }))!
  }

  /** @throws {StatusError} TooManyRequests while another one is in progress. */
  #run(task: Task): Promise<KeyRotation | undefined> {
    if (this.#task) throw new StatusError('TooManyRequests', 'a backup or a key rotation is in progress: retry when it has finished')
    this.#task = Promise.withResolvers()
    this.#post(task)
    return this.#task.promise
  }

  /** Finishes a backup in progress, interrupts a key rotation, closes the file and ends the thread. */
  close(): Promise<void> {
    return new Promise(resolve => {
      this.#closed = resolve
      this.#post({ type: 'close' })
    })
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }

  #endTask(error: string | undefined, rotation: KeyRotation | undefined): void {
    const task = this.#task
    this.#task = undefined
    if (error === undefined) task?.resolve(rotation)
    else task?.reject(new Error(error))
  }

  #post(message: ToStorageThread): void {
    this.#worker.postMessage(message)
  }
}
