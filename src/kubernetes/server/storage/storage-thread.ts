import type { Worker } from 'node:worker_threads'
import { StatusError } from '../../object/index.ts'
import { startThread } from '../../util/index.ts'
import type { CommitBatch, FromStorageThread, ReadyMessage, RowsBatch, StorageThreadOptions, ToStorageThread } from './protocol.ts'
import { ServerStartError } from './start-error.ts'

export type StorageThreadHandlers = {
  onRows(batch: RowsBatch): void
  onCommitted(durationMs: number): void
  /** The batch was rolled back; nothing of it is stored. `errcode` is SQLite's, 0 for other errors. */
  onCommitFailed(errcode: number, message: string): void
  /** The thread failed, or ended without {@link StorageThread.close}: nothing can be stored any more. May be called twice. */
  onFailure(reason: string): void
}

/** The main thread's side of `commit-worker.ts`, which owns the database file. One commit and one backup at a time. */
export class StorageThread {
  readonly #worker: Worker
  #closed: (() => void) | undefined
  #backup: { resolve(): void; reject(error: Error): void } | undefined
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
        case 'backedUp':
          this.#endBackup(message.error)
          return
      }
    })
    worker.on('error', (error: Error) => {
      handlers.onFailure(`the storage thread failed: ${error.message}`)
      reject(error)
    })
    worker.on('exit', () => {
      if (!this.#closed) handlers.onFailure('the storage thread ended')
      this.#closed?.()
    })
  }

  commit(batch: CommitBatch): void {
    this.#post(batch)
  }

  /** @throws {StatusError} TooManyRequests while another backup is in progress. */
  async backUp(path: string): Promise<void> {
    if (this.#backup) throw new StatusError('TooManyRequests', 'another backup is in progress: retry when it has finished')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#backup = { resolve, reject }
    this.#post({ type: 'backup', path })
    await promise
  }

  /** Finishes a backup in progress, closes the file and ends the thread. */
  close(): Promise<void> {
    return new Promise(resolve => {
      this.#closed = resolve
      this.#post({ type: 'close' })
    })
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }

  #endBackup(error: string | undefined): void {
    const backup = this.#backup
    this.#backup = undefined
    if (error === undefined) backup?.resolve()
    else backup?.reject(new Error(error))
  }

  #post(message: ToStorageThread): void {
    this.#worker.postMessage(message)
  }
}
