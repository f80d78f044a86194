import { clearedPendingStatus, type Run, runResource } from '../../api/index.ts'
import { coerceError, type Log, type Manager } from '../../kubernetes/controller/index.ts'
import { isReason, objectKey, rfc3339 } from '../../kubernetes/object/index.ts'
import type { Caches } from './caches.ts'

/** Writes under way at the same time: enough to keep a server busy, few enough that it stays fair to others. */
const maxInFlight = 64

export type RunWritesDependencies = {
  readonly manager: Manager
  readonly caches: Pick<Caches, 'runs'>
  readonly log: Log
  readonly nowMs: () => number
  /** Called when a write for a Run has ended, well or not. */
  readonly onEnd: (runKey: string) => void
}

/** The writes of dispatch to Runs: one for a Run at a time, each at the version that was decided on. */
export class RunWrites {
  readonly #dependencies: RunWritesDependencies
  /** Keys of Runs that a write is under way for. */
  readonly #inFlight = new Set<string>()
  readonly #settling = new Set<Promise<void>>()
  /** Uids of Runs that were let go, and that the cache still has: the next passes have nothing to do for them. */
  readonly #released = new Set<string>()

  constructor(dependencies: RunWritesDependencies) {
    this.#dependencies = dependencies
  }

  has(run: Run): boolean {
    return this.#inFlight.has(objectKey(run))
  }

  /** How many more may begin: what has to wait gets another pass when one ends. */
  get availableWrites(): number {
    return Math.max(0, maxInFlight - this.#inFlight.size)
  }

  isReleased({ metadata }: Run): boolean {
    return this.#released.has(metadata.uid)
  }

  markReleased({ metadata }: Run): void {
    if (this.#dependencies.caches.runs.has(objectKey({ metadata }))) this.#released.add(metadata.uid)
  }

  /** The cache knows that the Run is gone. */
  forget({ metadata }: Run): void {
    this.#released.delete(metadata.uid)
  }

  /** Runs one write for a Run at a time. What is refused because the Run moved on comes back with its newer version. */
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
        // The cache is behind: at once the same would be refused again.
        setTimeout(end, 20)
        return
      }
      this.#dependencies.log.warn({ err: coerceError(thrown), run: key }, 'write for a run failed, trying again in a second')
      setTimeout(end, 1_000).unref()
    })
    this.#settling.add(settled)
    void settled.then(() => this.#settling.delete(settled))
  }

  /** Resolves when what is under way has ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#settling)
  }

  /** Writes the status at the version of `run`: refused with Conflict if it has moved on, as a phase never goes back. */
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
