import { type RootDirectory, sha256 } from '../../../kubernetes/util/index.ts'
import {
  keptStatePath,
  LockedError,
  StaleEpochError,
  type StateClient,
  type StateFileStream,
  streamStateFile,
} from '../../../stores/state/index.ts'
import type { RunLog } from './run-log.ts'
import type { RunStopper } from './run-stopper.ts'
import { RunStoppedError } from './stop-cause.ts'
import { UnsavedStateError } from './unsaved-state-error.ts'

export type RunStateFileOptions = {
  client: Pick<StateClient, 'write'>
  /** Where the engine writes its state; undefined for `state: External`. */
  path: string | undefined
  /** Accesses `path`. */
  files: RootDirectory
  stopper: Pick<RunStopper, 'stop' | 'writeSignal'>
  log: Pick<RunLog, 'append'>
  /** The store has this version: sha256 in hex. */
  onSaved(digest: string): void
}

/** The state file of a Run: the engine rewrites it, and every version is streamed to the state store with the Run's epoch. */
export class RunStateFile {
  readonly #options: RunStateFileOptions
  #stream: StateFileStream | undefined
  #known: Buffer | undefined
  #isUnsaved = false

  constructor(options: RunStateFileOptions) {
    this.#options = options
  }

  get path(): string | undefined {
    return this.#options.path
  }

  /** The engine may have written state that the store has not acknowledged (invariant 5). */
  get isUnsaved(): boolean {
    return this.#isUnsaved
  }

  /** Writes the store's current version to the file, for the engine to start from. */
  async restore(bytes: Buffer): Promise<void> {
    const { path, files } = this.#options
    if (path === undefined) return
    await files.write(path, bytes)
    this.#known = bytes
    this.#markSaved(bytes)
  }

  /** From now on each version that the engine writes is uploaded. */
  startStreaming(): void {
    const { path, files, client, stopper } = this.#options
    if (path === undefined) return
    this.#isUnsaved = true
    this.#stream = streamStateFile({
      path,
      files,
      known: this.#known,
      keptPath: keptStatePath,
      upload: async bytes => {
        await client.write(bytes, { signal: stopper.writeSignal })
        this.#markSaved(bytes)
      },
      onError: error => this.handleStoreError(error),
    })
  }

  /** Resolves when the store has acknowledged the file as it is now. */
  async flush(): Promise<void> {
    await this.#stream?.flush()
    this.#isUnsaved = false
  }

  /**
   * Saves what a failed engine has written: it may have changed resources too.
   * @throws {UnsavedStateError} naming both failures, if the state could not be saved either.
   */
  async flushAfterFailure(error: unknown): Promise<void> {
    if (!this.#stream || this.#options.stopper.writeSignal.aborted) return
    try {
      await this.flush()
    } catch (flushError) {
      this.handleStoreError(flushError)
      throw new UnsavedStateError(error as Error, flushError as Error)
    }
  }

  close(): void {
    this.#stream?.close()
  }

  /** Stops the Run if the store rejects its writes for good; logs any other error, because the write is retried. */
  handleStoreError(error: unknown): void {
    const { stopper, log } = this.#options
    if (error instanceof StaleEpochError) stopper.stop({ kind: 'OwnershipLost', detail: error.message })
    else if (error instanceof LockedError) stopper.stop({ kind: 'StateRejected', detail: error.message })
    else if (!(error instanceof RunStoppedError)) log.append(`failed to save the state, retrying: ${(error as Error).message}`)
  }

  #markSaved(bytes: Buffer): void {
    this.#options.onSaved(sha256(bytes))
  }
}
