import { type Buckets, bucketCount } from './bucket.ts'
import type { MemberOrders, MemberProgress } from './member-core.ts'
import { NotOwnerError } from './not-owner-error.ts'

/** The right to work on the keys of one bucket. It never returns: a bucket that is lost and gained again is another tenure. */
export type Tenure = {
  readonly bucket: number
  /** Higher than that of every earlier owner of the bucket. */
  readonly fence: number
  /** Version of the ring when the tenure began. */
  readonly ringVersion: number
  /** Aborts when the work must end now. */
  readonly signal: AbortSignal
  /** Whether work may begin at this instant; correct even immediately after the process was stopped for a while. */
  isHeld(): boolean
  /** Whether a write may be sent at this instant: also while work ends that began before the bucket had to be given up. */
  mayWrite(): boolean
}

type Held = Tenure & {
  aborting: AbortController
  isAllowed: boolean
  running: number
  /** When its work is aborted, after it had to end. */
  abortAtMs: number
}

export type TenuresOptions = {
  /** Whether this process's Lease is valid at this instant. */
  isValid(): boolean
  /** How long running work may finish after its bucket had to be given up. */
  releaseGraceMs: number
}

/** What this process works on: it follows the orders of the ring, and knows what is still running. */
export class Tenures {
  readonly #isValid: () => boolean
  readonly #releaseGraceMs: number
  readonly #held = new Map<number, Held>()
  /** Tenures that must end and still have work, with those that were lost with the Lease. */
  readonly #ending = new Set<Held>()
  /** 1 for buckets that all caches have. */
  readonly #synced = new Uint8Array(bucketCount)
  #orders: MemberOrders | undefined
  /** Whether nothing has changed since {@link apply} that it depends on, but for its orders. */
  #isApplied = false
  #prepared: Pick<MemberProgress, 'ring' | 'prepared'> = { ring: '', prepared: 0 }

  constructor({ isValid, releaseGraceMs }: TenuresOptions) {
    this.#isValid = isValid
    this.#releaseGraceMs = releaseGraceMs
  }

  /** The buckets that this process may work on, provided that its Lease is valid. */
  get active(): Buckets {
    return [...this.#held.keys()].sort((a, b) => a - b)
  }

  /** Buckets that must end and on which work is running. */
  get busy(): Buckets {
    return [...new Set(Array.from(this.#ending, ({ bucket }) => bucket))].sort((a, b) => a - b)
  }

  /** Whether anything is running. */
  get isIdle(): boolean {
    return this.#ending.size === 0 && [...this.#held.values()].every(({ running }) => running === 0)
  }

  /** The buckets that the caches have from now on. */
  setSynced(synced: Uint8Array): void {
    if (Buffer.compare(synced, this.#synced) === 0) return
    this.#synced.set(synced)
    this.#isApplied = false
  }

  /**
   * Follows the orders; undefined: nothing is allowed any more. Work on buckets that are not allowed any more must not begin; returns those that
   * may begin now, and those that ended with work still running.
   */
  apply(orders: MemberOrders | undefined, nowMs: number): { begun: Buckets; ended: Buckets } {
    if (this.#isApplied && orders === this.#orders) return { begun: [], ended: [] }
    this.#isApplied = true
    this.#orders = orders
    const ended: number[] = []
    for (const [bucket, tenure] of this.#held) {
      if (orders?.allowed[bucket] === 1) continue
      tenure.isAllowed = false
      this.#held.delete(bucket)
      tenure.abortAtMs = nowMs + this.#releaseGraceMs
      if (tenure.running > 0) this.#ending.add(tenure)
      ended.push(bucket)
    }
    const begun: number[] = []
    if (!orders) {
      // After a server was restored, versions of the ring are used again.
      this.#prepared = { ring: '', prepared: 0 }
      this.abort()
      return { begun, ended }
    }
    const stillRunning = new Set(this.busy)
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      // A bucket that returned while its last work still runs must wait for it.
      if (orders.allowed[bucket] === 0 || this.#synced[bucket] === 0 || this.#held.has(bucket) || stillRunning.has(bucket)) continue
      this.#held.set(bucket, this.#tenure(bucket, orders))
      begun.push(bucket)
    }
    const isPrepared = orders.wanted.every((flag, bucket) => flag === 0 || this.#synced[bucket] === 1)
    if (isPrepared) this.#prepared = { ring: orders.ringUid, prepared: orders.version }
    return { begun, ended }
  }

  /** Aborts the work on buckets that must end, whatever is left of its grace period. */
  abort(): void {
    for (const tenure of this.#ending) tenure.aborting.abort(new NotOwnerError(tenure.bucket))
  }

  /** Aborts the work whose grace period has expired, each bucket at its own time. Returns the buckets, and when the next one expires. */
  abortExpired(nowMs: number): { aborted: Buckets; nextAtMs: number } {
    const aborted: number[] = []
    let nextAtMs = Number.POSITIVE_INFINITY
    for (const { bucket, aborting, abortAtMs } of this.#ending) {
      if (aborting.signal.aborted) continue
      if (nowMs < abortAtMs) {
        nextAtMs = Math.min(nextAtMs, abortAtMs)
        continue
      }
      aborting.abort(new NotOwnerError(bucket))
      aborted.push(bucket)
    }
    return { aborted, nextAtMs }
  }

  /** The tenure of a bucket if work on it may begin now. */
  find(bucket: number): Tenure | undefined {
    const tenure = this.#held.get(bucket)
    return tenure?.isHeld() ? tenure : undefined
  }

  /** Work begins under a tenure. Returns a function to call when it has ended, which returns whether it was the last work of a bucket that must end. */
  begin(tenure: Tenure): () => boolean {
    const held = tenure as Held
    held.running++
    let hasEnded = false
    return () => {
      if (hasEnded) return false
      hasEnded = true
      held.running--
      const isLast = held.running === 0 && this.#ending.delete(held)
      if (isLast) this.#isApplied = false
      return isLast
    }
  }

  /** What this process can acknowledge. */
  progress(): MemberProgress {
    const orders = this.#orders
    if (!orders) return { ring: '', stopped: 0, prepared: 0, busy: [] }
    const prepared = this.#prepared.ring === orders.ringUid ? this.#prepared.prepared : 0
    return { ring: orders.ringUid, stopped: orders.version, prepared, busy: this.busy }
  }

  #tenure(bucket: number, { fence, version }: MemberOrders): Held {
    const aborting = new AbortController()
    const tenure: Held = {
      bucket,
      fence,
      ringVersion: version,
      aborting,
      signal: aborting.signal,
      isAllowed: true,
      running: 0,
      abortAtMs: Number.POSITIVE_INFINITY,
      isHeld: () => tenure.isAllowed && this.#isValid(),
      // Others get the bucket only after its last work has ended, or this process's Lease.
      mayWrite: () => (tenure.isAllowed || tenure.running > 0) && !aborting.signal.aborted && this.#isValid(),
    }
    return tenure
  }
}
