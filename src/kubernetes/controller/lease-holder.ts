import { bootClock, type Client, type Clock, type LeaseBody, leaseResource } from '../client/index.ts'
import { isReason, type KubeObject, type NewObject } from '../object/index.ts'
import { coerceError, type Log, silentLog } from '../util/log.ts'
import { decideElection, type LeaseObservation, nextLeaseSpec, observeLease } from './decide-election.ts'
import { type LeaseAnnotations, safeAnnotations } from './lease-annotations.ts'

export type LeaseOptions = {
  leaseName: string
  namespace: string
  /** Unique per process, even across restarts: two processes with one identity would both lead. */
  identity: string
  /** How long other candidates wait after the last renewal they saw; default 15,000. */
  leaseDurationMs?: number | undefined
  /** How long this process leads after it sent its last successful renewal; default 10,000, must be below leaseDurationMs. */
  renewDeadlineMs?: number | undefined
  /** Time between attempts; default 2,000. */
  retryPeriodMs?: number | undefined
  /** What the holder publishes about itself: read at each renewal, and written as annotations of the Lease; if it throws, this is logged. Default: nothing. */
  annotations?: LeaseAnnotations | undefined
}

/** Storage of the Lease; tests use one in memory. A write that lost a race fails with Conflict or AlreadyExists. */
export type LeaseStore = {
  read(): Promise<KubeObject<LeaseBody> | undefined>
  create(lease: NewObject<LeaseBody>): Promise<KubeObject<LeaseBody>>
  update(lease: NewObject<LeaseBody>): Promise<KubeObject<LeaseBody>>
}

export type LeaseHolderParts = LeaseOptions & {
  store: LeaseStore
  log?: Log | undefined
  /** Default {@link bootClock}: a machine that was suspended does not believe that it still leads. */
  clock?: Clock | undefined
  random?: (() => number) | undefined
  /** For the informational times in the record. */
  wallMs?: (() => number) | undefined
}

export type LeaseCallbacks = {
  onGained(): void
  /** Called once per loss. The process contends again when it resolves, so it must end everything that needs the Lease. */
  onLost(): Promise<void> | void
}

/**
 * Holds a Lease as long as it can. This process stops leading `renewDeadlineMs` after it SENT the last successful renewal; others take
 * over `leaseDurationMs` after they SAW it, which is later. So two processes never lead at the same time, whatever their wall
 * clocks show (invariant 2), provided the leader checks {@link isHeld} before it acts.
 */
export class LeaseHolder {
  readonly #parts: LeaseHolderParts
  readonly #clock: Clock
  readonly #log: Log
  readonly #annotations: ReturnType<typeof safeAnnotations>
  readonly #leaseDurationMs: number
  readonly #renewDeadlineMs: number
  readonly #retryPeriodMs: number
  #observation: LeaseObservation | undefined
  #lease: KubeObject<LeaseBody> | undefined
  /** This process leads while the monotonic clock is below this. */
  #validUntilMs = Number.NEGATIVE_INFINITY
  #isLeading = false
  #lastError: Error | undefined

  constructor(parts: LeaseHolderParts) {
    const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = parts
    if (!(leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs && retryPeriodMs > 0)) {
      throw new RangeError(
        `leaseDurationMs ${leaseDurationMs} must be > renewDeadlineMs ${renewDeadlineMs}, which must be > retryPeriodMs ${retryPeriodMs} > 0`,
      )
    }
    this.#parts = parts
    this.#clock = parts.clock ?? bootClock
    this.#log = (parts.log ?? silentLog).child({ lease: parts.leaseName, identity: parts.identity })
    this.#annotations = safeAnnotations(parts.annotations, this.#log)
    this.#leaseDurationMs = leaseDurationMs
    this.#renewDeadlineMs = renewDeadlineMs
    this.#retryPeriodMs = retryPeriodMs
  }

  /** True while no other process can hold the Lease. Judged at the call, so it is correct immediately after the process was stopped for a while. */
  get isHeld(): boolean {
    return this.#isLeading && this.#clock.nowMs() < this.#validUntilMs
  }

  /** The identity of the process that leads, as of the last attempt; undefined if none is known. */
  get holder(): string | undefined {
    return this.#observation?.holder || undefined
  }

  /** Why the last attempt to read, acquire or renew the Lease failed; undefined if it did not. A Lease that another process holds is no failure. */
  get lastError(): Error | undefined {
    return this.#lastError
  }

  /** Contends until `signal` aborts; then, if this process leads, `onLost` ends the work before the Lease is released. */
  async run(signal: AbortSignal, callbacks: LeaseCallbacks): Promise<void> {
    const { random = Math.random } = this.#parts
    while (!signal.aborted) {
      if (await this.#try()) {
        this.#isLeading = true
        this.#log.info({}, 'became leader')
        callbacks.onGained()
        await this.#lead(signal)
        const isStillOurs = this.isHeld
        if (!isStillOurs) this.#log.error({}, 'lost leadership: the Lease was not renewed in time')
        // The Lease is kept while work winds down after a stop, so that no other process starts before it has ended.
        const keeping = new AbortController()
        const kept = isStillOurs ? this.#keep(keeping.signal) : undefined
        await callbacks.onLost()
        keeping.abort()
        await kept
        const mayRelease = signal.aborted && this.isHeld
        this.#isLeading = false
        if (mayRelease) await this.#release()
        this.#validUntilMs = Number.NEGATIVE_INFINITY
      } else {
        await this.#clock.sleep(this.#retryPeriodMs * (1 + random() * 0.2), signal)
      }
    }
  }

  /** Renews until the lease is lost or `signal` aborts. */
  async #lead(signal: AbortSignal): Promise<void> {
    const ended = new AbortController()
    const end = () => ended.abort()
    signal.addEventListener('abort', end, { once: true })
    // A hanging request is not awaited: the check in #try ignores its response.
    void this.#keep(ended.signal).then(end, end)
    // Independent of the renewals, because one of them may hang past the deadline.
    while (!ended.signal.aborted && this.isHeld) await this.#clock.sleep(this.#validUntilMs - this.#clock.nowMs(), ended.signal)
    end()
    signal.removeEventListener('abort', end)
  }

  async #keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(this.#retryPeriodMs, signal)
      if (signal.aborted || !this.isHeld) return
      await this.#try()
      if (!this.isHeld) return
    }
  }

  /** One round: read, decide, write. Returns whether the Lease is held for `renewDeadlineMs` from when the write was sent. */
  async #try(isSecond = false): Promise<boolean> {
    const { store, identity, wallMs = Date.now } = this.#parts
    const wasLeading = this.#isLeading
    try {
      // A leader overwrites its own last write without reading: one request per renewal.
      const current = wasLeading && this.#lease ? this.#lease : await store.read()
      if (current && current !== this.#lease) this.#observation = observeLease(this.#observation, current, this.#clock.nowMs())
      // The deletion of a Lease does not end the leadership of the process that held it: the observation stays.
      const action = decideElection(this.#observation, identity, this.#clock.nowMs())
      if (action.kind === 'wait') {
        this.#lastError = undefined
        // Only possible if the Lease was deleted or edited: another process leads before our deadline.
        if (wasLeading) this.#validUntilMs = Number.NEGATIVE_INFINITY
        return false
      }
      const sentMs = this.#clock.nowMs()
      const spec = nextLeaseSpec(current?.spec, { identity, durationMs: this.#leaseDurationMs, wallMs: wallMs() })
      const next = { ...this.#annotated(current ?? this.#newLease()), spec }
      const lease = current ? await store.update(next) : await store.create(next)
      const nowMs = this.#clock.nowMs()
      // Invariant 2: a Lease that expired while the response was in flight is not revived; it must be acquired again.
      if (wasLeading && (!this.#isLeading || nowMs >= this.#validUntilMs)) return false
      const validUntilMs = sentMs + this.#renewDeadlineMs
      this.#lease = lease
      this.#lastError = undefined
      this.#observation = observeLease(this.#observation, lease, nowMs)
      if (nowMs >= validUntilMs) return false
      // The response to an older, hanging request may arrive last.
      this.#validUntilMs = Math.max(this.#validUntilMs, validUntilMs)
      return true
    } catch (thrown) {
      // Our copy is outdated: read before the next write.
      this.#lease = undefined
      // Something else has written or deleted the leader's Lease: it reads immediately whether it still leads.
      if (this.isHeld && !isSecond && isReason(thrown, 'Conflict', 'NotFound')) return await this.#try(true)
      if (isReason(thrown, 'Conflict', 'AlreadyExists')) return false
      this.#lastError = coerceError(thrown)
      this.#log.warn(
        { err: this.#lastError },
        wasLeading ? 'Lease was not renewed, retrying' : 'Lease could not be read or acquired, retrying',
      )
      return false
    }
  }

  async #release(): Promise<void> {
    const { store, wallMs = Date.now, identity } = this.#parts
    if (!this.#lease) return
    try {
      const spec = { ...nextLeaseSpec(this.#lease.spec, { identity, durationMs: 1_000, wallMs: wallMs() }), holderIdentity: '' }
      await store.update({ ...this.#lease, spec })
    } catch (error) {
      this.#log.warn({ err: coerceError(error) }, 'Lease was not released; other candidates wait until it expires')
    }
    this.#lease = undefined
    this.#observation = undefined
  }

  #annotated<L extends NewObject<LeaseBody>>(lease: L): L {
    const added = this.#annotations()
    if (!added) return lease
    return { ...lease, metadata: { ...lease.metadata, annotations: { ...lease.metadata.annotations, ...added } } }
  }

  #newLease(): NewObject<LeaseBody> {
    const { leaseName, namespace } = this.#parts
    return { metadata: { name: leaseName, namespace } }
  }
}

/** The Lease of `options` at the API server. Requests have a timeout, so that an unresponsive server cannot block past the deadline. */
export function leaseStore(client: Client, { leaseName, namespace, renewDeadlineMs = 10_000 }: LeaseOptions): LeaseStore {
  const leases = client.resource(leaseResource)
  // Node accepts whole numbers only.
  const bounded = () => ({ signal: AbortSignal.timeout(Math.ceil(renewDeadlineMs)) })
  return {
    read: () => leases.getOrUndefined(leaseName, { namespace, ...bounded() }),
    create: lease => leases.create(lease, bounded()),
    update: lease => leases.update(lease, bounded()),
  }
}
