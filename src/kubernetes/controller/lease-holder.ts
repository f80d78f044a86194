import { bootClock, type Client, type Clock, type LeaseBody, leaseResource } from '../client/index.ts'
import { isReason, type KubeObject, type NewObject } from '../object/index.ts'
import { coerceError, type Log, silentLog } from '../util/log.ts'
import { decideElection, nextLeaseSpec, type Observation, observeLease } from './decide-election.ts'

export type LeaseOptions = {
  leaseName: string
  namespace: string
  /** Who we are: unique per process, also after a restart; two with one identity would both lead. */
  identity: string
  /** How long others wait after our last sign of life; default 15,000. */
  leaseDurationMs?: number | undefined
  /** How long after the sending of our last successful renewal we lead; default 10,000, must be below leaseDurationMs. */
  renewDeadlineMs?: number | undefined
  /** Time between attempts; default 2,000. */
  retryPeriodMs?: number | undefined
}

/** Where the lease is kept; tests bring one in memory. Every write fails with Conflict or AlreadyExists if it came second. */
export type LeaseStore = {
  read(): Promise<KubeObject<LeaseBody> | undefined>
  create(lease: NewObject<LeaseBody>): Promise<KubeObject<LeaseBody>>
  update(lease: NewObject<LeaseBody>): Promise<KubeObject<LeaseBody>>
}

export type LeaseHolderParts = LeaseOptions & {
  store: LeaseStore
  log?: Log | undefined
  /** Default {@link bootClock}: a machine that slept does not believe that it leads still. */
  clock?: Clock | undefined
  random?: (() => number) | undefined
  /** For the times in the record, which only people read. */
  wallMs?: (() => number) | undefined
}

export type LeaseCallbacks = {
  onGained(): void
  /** Called once per loss; we contend again when it resolves, so it ends everything that needed the lease. */
  onLost(): Promise<void> | void
}

/**
 * Holds a Lease as long as it can. We stop leading `renewDeadlineMs` after the SENDING of the last renewal that
 * succeeded; others take over `leaseDurationMs` after they SAW it, which is later. So two never lead at once, whatever
 * the clocks of the machines say (invariant 2), as long as what leads asks {@link isHeld} before it acts.
 */
export class LeaseHolder {
  readonly #parts: LeaseHolderParts
  readonly #clock: Clock
  readonly #log: Log
  readonly #leaseDurationMs: number
  readonly #renewDeadlineMs: number
  readonly #retryPeriodMs: number
  #observation: Observation | undefined
  #lease: KubeObject<LeaseBody> | undefined
  /** We lead while the monotonic clock is below this. */
  #validUntilMs = Number.NEGATIVE_INFINITY
  #isLeading = false

  constructor(parts: LeaseHolderParts) {
    const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = parts
    if (!(leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs && retryPeriodMs > 0)) {
      throw new RangeError(
        `leaseDurationMs ${leaseDurationMs} must be > renewDeadlineMs ${renewDeadlineMs}, and that > retryPeriodMs ${retryPeriodMs} > 0`,
      )
    }
    this.#parts = parts
    this.#clock = parts.clock ?? bootClock
    this.#log = (parts.log ?? silentLog).child({ lease: parts.leaseName, identity: parts.identity })
    this.#leaseDurationMs = leaseDurationMs
    this.#renewDeadlineMs = renewDeadlineMs
    this.#retryPeriodMs = retryPeriodMs
  }

  /** True while nobody else can hold the lease: judged now, so also right after the process was stopped for a while. */
  get isHeld(): boolean {
    return this.#isLeading && this.#clock.nowMs() < this.#validUntilMs
  }

  /** Contends until `signal` aborts; then, if we lead, `onLost` ends the work first and the lease is released. */
  async run(signal: AbortSignal, callbacks: LeaseCallbacks): Promise<void> {
    const { random = Math.random } = this.#parts
    while (!signal.aborted) {
      if (await this.#try()) {
        this.#isLeading = true
        this.#log.info({}, 'became leader')
        callbacks.onGained()
        await this.#lead(signal)
        const isStillOurs = this.isHeld
        if (!isStillOurs) this.#log.error({}, 'lost leadership: the lease could not be renewed in time')
        // While the work winds down after a stop, the lease is kept: nobody starts before we are done.
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
    const onAbort = () => ended.abort()
    signal.addEventListener('abort', onAbort, { once: true })
    const renewing = this.#keep(ended.signal)
    // Beside the renewals, since one of them may hang for longer than the deadline.
    while (!signal.aborted && this.isHeld) await this.#clock.sleep(this.#validUntilMs - this.#clock.nowMs(), signal)
    ended.abort()
    signal.removeEventListener('abort', onAbort)
    // A hanging request is not waited for: its answer is ignored by the check in #try.
    void renewing.catch(() => undefined)
  }

  async #keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(this.#retryPeriodMs, signal)
      if (signal.aborted || !this.isHeld) return
      await this.#try()
    }
  }

  /** One round: read, decide, write. Returns whether the lease is ours for the next `renewDeadlineMs` from its sending. */
  async #try(): Promise<boolean> {
    const { store, identity, wallMs = Date.now } = this.#parts
    const wasLeading = this.#isLeading
    try {
      // A leader writes over what it wrote last, without reading: one request per renewal.
      const current = wasLeading && this.#lease ? this.#lease : await store.read()
      if (current && current !== this.#lease) this.#observation = observeLease(this.#observation, current, this.#clock.nowMs())
      if (!current) this.#observation = undefined
      const verdict = decideElection(this.#observation, identity, this.#clock.nowMs())
      if (verdict.kind === 'wait') return false
      const sentMs = this.#clock.nowMs()
      const spec = nextLeaseSpec(current?.spec, { identity, durationMs: this.#leaseDurationMs, wallMs: wallMs() })
      const lease = current ? await store.update({ ...current, spec }) : await store.create({ ...this.#newLease(), spec })
      const nowMs = this.#clock.nowMs()
      // Invariant 2: a lease that ran out while the answer was on its way is not brought back to life; it is won anew.
      if (wasLeading && (!this.#isLeading || nowMs >= this.#validUntilMs)) return false
      const validUntilMs = sentMs + this.#renewDeadlineMs
      this.#lease = lease
      this.#observation = observeLease(this.#observation, lease, nowMs)
      if (nowMs >= validUntilMs) return false
      // An older request that hung may be answered last.
      this.#validUntilMs = Math.max(this.#validUntilMs, validUntilMs)
      return true
    } catch (thrown) {
      // What we hold is out of date: read before the next write.
      this.#lease = undefined
      const isRace = isReason(thrown, 'Conflict', 'AlreadyExists')
      if (!isRace)
        this.#log.warn({ err: coerceError(thrown) }, wasLeading ? 'lease was not renewed, trying again' : 'lease could not be tried')
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
      this.#log.warn({ err: coerceError(error) }, 'lease was not released, others wait until it runs out')
    }
    this.#lease = undefined
    this.#observation = undefined
  }

  #newLease(): NewObject<LeaseBody> {
    const { leaseName, namespace } = this.#parts
    return { metadata: { name: leaseName, namespace } }
  }
}

/** The lease of `options` at the API server. Requests are bounded, so that a silent server cannot hold us past the deadline. */
export function leaseStore(client: Client, { leaseName, namespace, renewDeadlineMs = 10_000 }: LeaseOptions): LeaseStore {
  const leases = client.resource(leaseResource)
  const bounded = () => ({ signal: AbortSignal.timeout(renewDeadlineMs) })
  return {
    read: () => leases.getOrUndefined(leaseName, { namespace, ...bounded() }),
    create: lease => leases.create(lease, bounded()),
    update: lease => leases.update(lease, bounded()),
  }
}
