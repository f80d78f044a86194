import { setTimeout as delay } from 'node:timers/promises'
import type { Run } from '../../api/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import type { Log } from '../../kubernetes/util/index.ts'

export type RunRejectionsOptions = {
  readonly workerName: string
  readonly log: Pick<Log, 'info' | 'warn'>
  /** Writes the end of the Run. */
  reject(run: Run): Promise<void>
}

/** How long a worker that ends waits for writes. A Run whose end is not written is Lost when dispatch finds that the worker has ended. */
const graceMs = 2_000

/** Ends the Runs for which a worker has no free slot. */
export class RunRejections {
  readonly #options: RunRejectionsOptions
  readonly #writing = new Set<Promise<unknown>>()

  constructor(options: RunRejectionsOptions) {
    this.#options = options
  }

  /** Begins to write the end of the Run. Never throws. */
  begin(run: Run): void {
    const { workerName, log, reject } = this.#options
    const fields = { worker: workerName, run: objectKey(run) }
    log.info(fields, 'run rejected: no slot is free')
    // Dispatch reports a Run that stays as it is.
    const onError = (error: unknown) => log.warn({ ...fields, error: String(error) }, 'failed to reject a run')
    const writing: Promise<unknown> = reject(run)
      .catch(onError)
      .finally(() => this.#writing.delete(writing))
    this.#writing.add(writing)
  }

  /** Resolves when all are written, or after a grace period. */
  async settled(): Promise<void> {
    if (this.#writing.size > 0) await Promise.race([Promise.all(this.#writing), delay(graceMs, undefined, { ref: false })])
  }
}
