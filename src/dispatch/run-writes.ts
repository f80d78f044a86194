import { type Run, runResource } from '../api/index.ts'
import { coerceError, type Log, type Manager } from '../controller/index.ts'
import { isReason, objectKey, rfc3339 } from '../kube/index.ts'
import type { Caches } from './caches.ts'

/** Writes under way at the same time: enough to keep a server busy, few enough that it stays fair to others. */
const maxInFlight = 64

export type RunWritesParts = {
  readonly manager: Manager
  readonly caches: Pick<Caches, 'runs'>
  readonly log: Log
  readonly nowMs: () => number
  /** Called when a write has ended. */
  readonly onEnd: () => void
}

/** The writes of dispatch to Runs: one for a Run at a time, each at the version that was decided on. */
export class RunWrites {
  readonly #parts: RunWritesParts
  /** Keys of Runs that a write is under way for, with the Worker they are being given to, if that is what it does. */
  readonly #inFlight = new Map<string, string | undefined>()
  readonly #settling = new Set<Promise<void>>()

  constructor(parts: RunWritesParts) {
    this.#parts = parts
  }

  has(run: Run): boolean {
    return this.#inFlight.has(objectKey(run))
  }

  /** True while so many writes are under way that the next have to wait: each that ends leads to another pass. */
  get isFull(): boolean {
    return this.#inFlight.size >= maxInFlight
  }

  /** By Worker: how many Runs are being given to it that the cache does not show there yet. */
  given(): Map<string, number> {
    const given = new Map<string, number>()
    for (const [key, worker] of this.#inFlight) {
      if (worker !== undefined && !this.#parts.caches.runs.get(key)?.spec.workerName) given.set(worker, (given.get(worker) ?? 0) + 1)
    }
    return given
  }

  /** Runs one write for a Run at a time. What is refused because the Run moved on comes back with its newer version. */
  begin(run: Run, worker: string | undefined, write: () => Promise<void>): void {
    const key = objectKey(run)
    if (this.#inFlight.has(key)) return
    this.#inFlight.set(key, worker)
    const end = () => {
      this.#inFlight.delete(key)
      this.#parts.onEnd()
    }
    const settled = write().then(end, (thrown: unknown) => {
      if (isReason(thrown, 'Conflict', 'NotFound')) {
        // The cache is behind: at once the same would be refused again.
        setTimeout(end, 20)
        return
      }
      this.#parts.log.warn({ err: coerceError(thrown), run: key }, 'write for a run failed, trying again in a second')
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
    const handle = this.#parts.manager.client.resource(runResource)
    this.#parts.caches.runs.applyLocal(await handle.patchStatus(name, { status }, { namespace, resourceVersion }))
  }

  async end(run: Run, phase: 'Canceled' | 'Lost', reason: string, message: string): Promise<void> {
    await this.status(run, { phase, reason, message, finishedAt: rfc3339(this.#parts.nowMs()) })
  }

  async markAssigned(run: Run): Promise<void> {
    await this.status(run, { phase: 'Assigned', assignedAt: rfc3339(this.#parts.nowMs()), reason: null, message: null })
  }
}
