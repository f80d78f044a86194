import type { GatewayUser } from '../request/index.ts'
import type { RingLimits } from './event-ring.ts'
import { SharedWatch } from './shared-watch.ts'
import type { WatchPlan } from './watch-plan.ts'

export type SharedWatchesOptions = {
  readonly user: GatewayUser
  /** Of each shared watch. Default 10,000 events and 16 MiB. */
  readonly ring?: Partial<RingLimits> | undefined
  /** The clients of more collections have a watch each. Default 256. */
  readonly maxWatches?: number | undefined
  maxBufferedBytes(): number
  /** Default 15,000: as a partition checks the watches of its own users. */
  readonly checkEveryMs?: number | undefined
  /** Default 60,000. */
  readonly lingerMs?: number | undefined
  reconnected?(partition: string): void
  passed?(events: number): void
  readonly log: (message: string, error?: unknown) => void
}

const defaults = { maxEvents: 10_000, maxBytes: 16 * 1024 * 1024, maxWatches: 256, checkEveryMs: 15_000, lingerMs: 60_000 }

/** The watches that clients share, by collection and partitions. */
export class SharedWatches {
  readonly #options: SharedWatchesOptions
  readonly #watches = new Map<string, { readonly opened: Promise<SharedWatch>; readonly watch: SharedWatch; readonly plan: WatchPlan }>()

  constructor(options: SharedWatchesOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#watches.size
  }

  /** Those that are open, with what they watch. */
  *[Symbol.iterator](): Generator<{ readonly watch: SharedWatch; readonly plan: WatchPlan }> {
    yield* this.#watches.values()
  }

  /** Whether another client of this collection can share a watch. */
  mayShare({ key }: WatchPlan): boolean {
    return this.#watches.has(key) || this.#watches.size < (this.#options.maxWatches ?? defaults.maxWatches)
  }

  /**
   * The watch of the collection; opened now if there is none, after `from`.
   * @throws {StatusError} or {Error} if a partition does not answer.
   */
  async open(plan: WatchPlan, from: number): Promise<SharedWatch> {
    const { key } = plan
    const known = this.#watches.get(key)
    if (known) return await known.opened
    const { user, ring, maxBufferedBytes, checkEveryMs = defaults.checkEveryMs, lingerMs = defaults.lingerMs, log } = this.#options
    const watch: SharedWatch = new SharedWatch({
      parts: plan.parts.map(part => ({ partition: part.connection, pathFrom: at => plan.sharedPath(part, at) })),
      headers: { accept: 'application/json' },
      ring: { maxEvents: ring?.maxEvents ?? defaults.maxEvents, maxBytes: ring?.maxBytes ?? defaults.maxBytes },
      isCurrent: plan.isCurrent,
      isCurrentAt: plan.isCurrentAt,
      reconnected: partition => this.#options.reconnected?.(partition),
      passed: events => this.#options.passed?.(events),
      closed: () => {
        if (this.#watches.get(key)?.watch === watch) this.#watches.delete(key)
      },
      ...{ user, from, maxBufferedBytes, checkEveryMs, lingerMs, log },
    })
    // Every partition has reached the version that it begins after: none may answer that it is too large.
    const reached = Promise.all(plan.parts.map(({ connection }) => connection.progress(user, from)))
    const opened = reached.then(() => watch.open()).then(() => watch)
    this.#watches.set(key, { opened, watch, plan })
    try {
      return await opened
    } catch (error) {
      watch.close()
      throw error
    }
  }

  close(): void {
    for (const { watch } of [...this.#watches.values()]) watch.close()
  }
}
