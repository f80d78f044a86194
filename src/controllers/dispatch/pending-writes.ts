import type { WriteOutcome } from './dispatch-event.ts'
import { type ObjectVersion, objectIdOf } from './object-version.ts'

/** Maximum number of Runs that are written concurrently: enough to keep a server busy, few enough to leave capacity for other clients. */
const maxRunWrites = 64

/** After a rejected write the cache is stale, so an immediate retry would be rejected again. */
const retryAfterMs = { Rejected: 20, Failed: 1_000 }

/**
 * The objects that are being written, or whose last write has just failed: nothing is decided for them. An object is decided again immediately after a
 * successful write, and after a delay otherwise.
 */
export class PendingWrites {
  /** By object: the time until which it remains here; Infinity while its write is in flight. */
  readonly #untilMs = new Map<string, number>()
  readonly #delayed = new Set<string>()
  #runs = 0

  has(object: ObjectVersion): boolean {
    return this.#untilMs.has(objectIdOf(object))
  }

  /** How many more writes to Runs may begin. */
  get availableRuns(): number {
    return Math.max(0, maxRunWrites - this.#runs)
  }

  begin(object: ObjectVersion): void {
    const id = objectIdOf(object)
    if (!this.#untilMs.has(id) && object.kind === 'Run') this.#runs++
    this.#untilMs.set(id, Number.POSITIVE_INFINITY)
  }

  /** Returns true if the object can be decided again immediately. */
  settle(object: ObjectVersion, outcome: WriteOutcome, monotonicMs: number): boolean {
    const id = objectIdOf(object)
    if (!this.#untilMs.has(id)) return false
    if (outcome === 'Written') {
      this.#end(id)
      return true
    }
    this.#untilMs.set(id, monotonicMs + retryAfterMs[outcome])
    this.#delayed.add(id)
    return false
  }

  /** Ends the delays that are over, and returns the ids of their objects. */
  takeDue(monotonicMs: number): string[] {
    const due = [...this.#delayed].filter(id => this.#untilMs.get(id)! <= monotonicMs)
    for (const id of due) this.#end(id)
    return due
  }

  /** Time until the next delay is over; Infinity if there is none. */
  nextDueMs(monotonicMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY
    for (const id of this.#delayed) nextMs = Math.min(nextMs, this.#untilMs.get(id)! - monotonicMs)
    return nextMs
  }

  #end(id: string): void {
    if (this.#untilMs.delete(id) && id.startsWith('Run/')) this.#runs--
    this.#delayed.delete(id)
  }
}
