import { clearedPendingStatus, type Run, runResource } from '../../api/index.ts'
import { coerceError, type Log, type Manager } from '../../kubernetes/controller/index.ts'
import { isReason, objectKey, rfc3339 } from '../../kubernetes/object/index.ts'
import type { Caches } from './caches.ts'

/** Maximum number of concurrent writes: enough to keep a server busy, few enough to leave capacity for other clients. */
const maxInFlight = 64

export type RunWritesDependencies = {
  readonly manager: Manager
  readonly caches: Pick<Caches, 'runs'>
  readonly log: Log
  readonly nowMs: () => number
  /** Called when a write for a Run has succeeded or failed. */
  readonly onEnd: (runKey: string) => void
}

/** Writes to Runs: one at a time for each Run, each with the resourceVersion that the decision was based on. */
export class RunWrites {
  readonly #dependencies: RunWritesDependencies
  /** Keys of Runs with a write in flight. */
  readonly #inFlight = new Set<string>()
  readonly #settling = new Set<Promise<void>>()
  /** Uids of Runs whose finalizer was removed and that are still in the cache; the next passes skip them. */
  readonly #released = new Set<string>()

  constructor(dependencies: RunWritesDependencies) {
    this.#dependencies = dependencies
  }

  isInFlight(run: Run): boolean {
    return this.#inFlight.has(objectKey(run))
  }

  /** How many more writes may begin now. The end of each write wakes the dispatch loop for the rest. */
  get available(): number {
    return Math.max(0, maxInFlight - this.#inFlight.size)
  }

  isReleased({ metadata }: Run): boolean {
    return this.#released.has(metadata.uid)
  }

  markReleased({ metadata }: Run): void {
    if (this.#dependencies.caches.runs.has(objectKey({ metadata }))) this.#released.add(metadata.uid)
  }

  /** To be called when the cache has seen the deletion of the Run. */
  forget({ metadata }: Run): void {
    this.#released.delete(metadata.uid)
  }

  /** Begins a write unless one is in flight for the Run. A write that is rejected because the Run has changed is decided again at its newer version. */
  begin(run: Run, write: () => Promise<void>): void {
    const key = objectKey(run)
    if (this.#inFlight.has(key)) return
    this.#inFlight.add(key)
    const end = () => {
      this.#inFlight.delete(key)
      this.#dependencies.onEnd(key)
    }
    const settled = write().then(end, (thrown: unknown) => {
      if (isReason(thrown, 'Conflict', 'NotFound')) {
        // The cache is stale, so an immediate retry would be rejected again.
        setTimeout(end, 20)
        return
      }
      this.#dependencies.log.warn({ err: coerceError(thrown), run: key }, 'write to a Run failed, retrying in 1 s')
      setTimeout(end, 1_000).unref()
    })
    this.#settling.add(settled)
    void settled.then(() => this.#settling.delete(settled))
  }

  /** Resolves when all writes in flight have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#settling)
  }

  /** Writes the status at the resourceVersion of `run`. Rejected with Conflict if the Run has changed, so that a phase never goes back. */
  async status(run: Run, status: object): Promise<void> {
    const { name, namespace, resourceVersion } = run.metadata
    const handle = this.#dependencies.manager.leaderClient.resource(runResource)
    this.#dependencies.caches.runs.applyLocal(await handle.patchStatus(name, { status }, { namespace, resourceVersion }))
  }

  async end(run: Run, phase: 'Canceled' | 'Lost', reason: string, message: string): Promise<void> {
    await this.status(run, { phase, reason, message, finishedAt: rfc3339(this.#dependencies.nowMs()) })
  }

  async markAssigned(run: Run): Promise<void> {
    await this.status(run, { phase: 'Assigned', ...clearedPendingStatus })
  }
}
