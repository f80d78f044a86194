import { type Buckets, bucketCount } from './bucket.ts'
import type { MemberAction, MemberCore, MemberOrders, MemberProgress } from './member-core.ts'
import type { Tenures } from './tenures.ts'

/** What changed, for the process to carry out. */
export type MemberStep = {
  /** Undefined if that did not change. `lost`: not by its own release. */
  readonly slot: 'claimed' | 'lost' | 'released' | undefined
  /** What the caches should have from now on; undefined if that did not change. Work on what is missing in it has ended before. */
  readonly wanted: Uint8Array<ArrayBuffer> | undefined
  /** Nothing of these buckets may begin any more. */
  readonly ended: Buckets
  /** Work on these buckets may begin: all their keys are due. */
  readonly begun: Buckets
  /** After {@link RingMember.leave}: the other members have the buckets, or there is none. */
  readonly isDrained: boolean
}

export type RingMemberOptions = {
  core: MemberCore
  tenures: Tenures
  /** The caches that must have a bucket before work on it begins. */
  caches(): Iterable<{ readonly synced: Uint8Array }>
  /** Carries out a step. */
  perform(step: MemberStep): void
  /** For tests of what finds a wrong acknowledgement; default: the truth. */
  report?: ((progress: MemberProgress) => MemberProgress) | undefined
}

/**
 * The rules by which a process follows its ring: which orders apply, when work begins, ends and is aborted, what is acknowledged, and when the
 * slot is released. Has no clock and sends nothing: the process (`shards.ts`) and the simulation do both in the same way.
 */
export class RingMember {
  readonly #options: RingMemberOptions
  #orders: MemberOrders | undefined
  #wasValid = false
  #isLeaving = false
  #isEnding = false
  #isReleased = false
  /** 1 for the buckets that all caches have. */
  readonly #synced = new Uint8Array(bucketCount)

  constructor(options: RingMemberOptions) {
    this.#options = options
  }

  /** What the ring orders at present; undefined: nothing is allowed. */
  get orders(): MemberOrders | undefined {
    return this.#orders
  }

  /** Whether the end of a piece of work may allow something else, although its bucket still has other work or is not given up. */
  get awaitsEnd(): boolean {
    return this.#isEnding || this.#options.core.isLost
  }

  /** The others should take the buckets of this process, which works on them meanwhile. */
  leave(): void {
    this.#isLeaving = true
    this.#options.core.leave()
  }

  /** Nothing may begin any more, and what is running is aborted; the slot is released when it has ended. */
  end(): void {
    this.#isEnding = true
  }

  /** What to send now, and when to ask again at the latest. Ask also after each observation, response and change of the caches, and when work ends. */
  wake(nowMs: number): { actions: MemberAction[]; aborted: Buckets; wakeAtMs: number } {
    const { core, tenures } = this.#options
    this.follow(nowMs)
    const { actions, wakeAtMs } = core.decide(nowMs)
    this.follow(nowMs)
    const { aborted, nextAtMs } = tenures.abortExpired(nowMs)
    return { actions, aborted, wakeAtMs: Math.min(wakeAtMs, nextAtMs) }
  }

  /** Does what the ring orders, and reports how far it has come. */
  follow(nowMs: number): void {
    const { core, tenures, perform, report } = this.#options
    const isValid = core.isValid(nowMs)
    const hasSlotChanged = isValid !== this.#wasValid
    this.#wasValid = isValid
    const orders = isValid && !this.#isEnding ? core.orders : undefined
    const isNew = orders !== this.#orders
    this.#orders = orders
    this.#readCaches()
    tenures.setSynced(this.#synced)
    const { begun, ended } = tenures.apply(orders, nowMs)
    perform({
      slot: !hasSlotChanged ? undefined : isValid ? 'claimed' : this.#isReleased ? 'released' : 'lost',
      // A new session keeps the caches until the ring has it.
      wanted: isNew && orders?.isMember ? orders.wanted : undefined,
      ended,
      begun,
      isDrained: this.#isLeaving && core.isDrained(nowMs),
    })
    const progress = tenures.progress()
    core.report(report?.(progress) ?? progress)
    if (core.isLost && tenures.isIdle) core.ended()
    if (this.#isEnding && !this.#isReleased && tenures.isIdle) {
      this.#isReleased = true
      core.release()
    }
  }

  #readCaches(): void {
    const all = this.#synced.fill(1)
    for (const { synced } of this.#options.caches()) for (let bucket = 0; bucket < bucketCount; bucket++) all[bucket]! &= synced[bucket]!
  }
}
