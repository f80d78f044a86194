import { defaults } from '../../../api/index.ts'
import type { WorkerLease } from '../dispatch-event.ts'
import type { ObjectVersion } from '../object-version.ts'
import { LeaseObserver } from './lease-observer.ts'

/** A worker whose Lease has expired by invariant 2. It is lost once the server has confirmed it. */
export type ExpiredWorker = {
  readonly worker: string
  /** The last renewal that was seen. Undefined: it has no Lease. */
  readonly lease: { readonly uid: string; readonly resourceVersion: string } | undefined
}

/** After a confirmation that failed. */
const retryAfterMs = 500

type ObservedWorker = {
  lease: WorkerLease | undefined
  worker: ObjectVersion | undefined
  hasRuns: boolean
  /** How long its Lease may remain unchanged. */
  durationMs: number
  /** Its process has ended: it is a suspect immediately, and lost when its Lease has expired. */
  hasExited: boolean
  /** So have all processes that it started: its Lease need not expire. */
  isGone: boolean
  /** `Confirming`: the server is being asked. `Lost`: confirmed, and what it leaves is being removed. */
  state: 'Observed' | 'Confirming' | 'Lost'
}

/**
 * Decides which workers are lost, and which are suspect. It observes every name that occurs in a Worker, a Lease or a Run: a worker that ended
 * between two steps of its registration or of its shutdown leaves only some of these objects, and they are removed in the same way.
 *
 * A suspect may be lost: it is late by half a lease duration, or its process has exited. It gets no new Runs; if it renews its Lease, it is no
 * longer a suspect.
 */
export class FailureDetector {
  readonly #durationMs: number
  readonly #observer = new LeaseObserver()
  readonly #workers = new Map<string, ObservedWorker>()
  #suspects = new Set<string>()
  /** When the next worker expires or becomes a suspect, unless it renews its Lease: until then nothing has to be checked. */
  #checkAtMs = Number.NEGATIVE_INFINITY
  #expireAtMs = Number.NEGATIVE_INFINITY
  readonly #retryAtMs = new Map<string, number>()
  /** Workers that are suspects whatever their Lease says: those that have exited, are being confirmed or are lost. */
  readonly #flagged = new Set<string>()

  /**
   * @param durationMs how long a Lease may remain unchanged. 10,000 by design; a larger value is safe, a smaller one is not. It is longer for a worker
   * whose Lease has a longer one: that worker stops its engines later, whatever this process was started with.
   */
  constructor(durationMs: number) {
    if (!Number.isFinite(durationMs) || durationMs <= 0) throw new RangeError(`durationMs must be a number > 0, got ${durationMs}`)
    this.#durationMs = durationMs
  }

  // ---- observations; each returns true if a decision is due

  workerChanged(worker: ObjectVersion, nowMs: number): boolean {
    const { name, uid } = worker
    const observed = this.#observed(name)
    // A new worker of this name has registered: the loss of the previous one does not concern it.
    if (observed.worker && observed.worker.uid !== uid) this.#restart(name, observed, nowMs)
    observed.worker = worker
    return this.#refresh(name, observed, nowMs)
  }

  workerDeleted(name: string, nowMs: number): boolean {
    const observed = this.#workers.get(name)
    if (!observed) return false
    observed.worker = undefined
    if (observed.state === 'Lost' || observed.hasExited) this.#restart(name, observed, nowMs)
    return this.#refresh(name, observed, nowMs)
  }

  leaseChanged(lease: WorkerLease, nowMs: number): boolean {
    const observed = this.#observed(lease.worker)
    observed.lease = lease
    const { durationMs = 0 } = lease
    const isLong = durationMs > defaults.leaseDurationMs
    observed.durationMs = Math.max(this.#durationMs, isLong ? Math.min(durationMs, defaults.maxLeaseDurationMs) : 0)
    return this.#refresh(lease.worker, observed, nowMs)
  }

  leaseDeleted(name: string, nowMs: number): boolean {
    const observed = this.#workers.get(name)
    if (!observed) return false
    observed.lease = undefined
    return this.#refresh(name, observed, nowMs)
  }

  /** @param hasRuns whether the worker has Runs that have not ended. */
  runsChanged(name: string, hasRuns: boolean, nowMs: number): boolean {
    const observed = hasRuns ? this.#observed(name) : this.#workers.get(name)
    if (!observed) return false
    observed.hasRuns = hasRuns
    return this.#refresh(name, observed, nowMs)
  }

  /** @param isGone whether all processes that it started have ended too. */
  processExited(name: string, isGone = false): boolean {
    const observed = this.#workers.get(name)
    if (!observed?.worker || (observed.hasExited && (observed.isGone || !isGone))) return false
    Object.assign(observed, { hasExited: true, isGone })
    this.#flagged.add(name)
    this.#checkSoon()
    return true
  }

  lossSettled(name: string, outcome: 'Lost' | 'Renewed' | 'Failed', nowMs: number): boolean {
    const observed = this.#workers.get(name)
    if (observed?.state !== 'Confirming') return false
    observed.state = outcome === 'Lost' ? 'Lost' : 'Observed'
    if (outcome !== 'Lost' && !observed.hasExited) this.#flagged.delete(name)
    if (outcome === 'Failed' || (outcome === 'Renewed' && observed.isGone)) this.#retryAtMs.set(name, nowMs + retryAfterMs)
    // The new renewal comes with the watch. Until then its time counts from the moment at which the server reported it.
    if (outcome === 'Renewed') this.#observer.restart(name, nowMs)
    this.#checkSoon()
    return true
  }

  /** What the lost worker left has been removed. */
  removed(name: string, nowMs: number): void {
    const observed = this.#workers.get(name)
    if (!observed) return
    this.#restart(name, observed, nowMs)
    this.#refresh(name, observed, nowMs)
  }

  // ---- decisions

  isSuspect(name: string): boolean {
    return this.#suspects.has(name)
  }

  /** How long the Lease of a worker may remain unchanged. */
  durationOf(name: string): number {
    return this.#workers.get(name)?.durationMs ?? this.#durationMs
  }

  hasLease(name: string): boolean {
    return this.#workers.get(name)?.lease !== undefined
  }

  /** Confirmed losses. Their Runs end, and then their Workers are deleted; see {@link removed}. */
  *lost(): Generator<{ readonly name: string; readonly worker: ObjectVersion | undefined }> {
    for (const name of this.#flagged) {
      const observed = this.#workers.get(name)
      if (observed?.state === 'Lost') yield { name, worker: observed.worker }
    }
  }

  /**
   * @returns `expired`: workers to confirm; they count as being confirmed from now on. `changed`: names of workers that became suspects or stopped being
   * suspects.
   */
  decide(nowMs: number): {
    readonly expired: readonly ExpiredWorker[]
    readonly changed: Iterable<string>
    readonly requeueAfterMs: number
  } {
    if (nowMs < this.#checkAtMs) return { expired: [], changed: [], requeueAfterMs: this.#expireAtMs - nowMs }
    const expired: ExpiredWorker[] = []
    const suspects = new Set(this.#flagged)
    this.#checkAtMs = Number.POSITIVE_INFINITY
    this.#expireAtMs = Number.POSITIVE_INFINITY
    for (const { worker: name, sinceMs } of this.#observer.bySilence()) {
      const observed = this.#workers.get(name)!
      if (observed.state !== 'Observed' || observed.isGone) continue
      const { durationMs } = observed
      const expireAtMs = Math.max(sinceMs + durationMs, this.#retryAtMs.get(name) ?? Number.NEGATIVE_INFINITY)
      if (nowMs < sinceMs + durationMs / 2) {
        this.#checkAtMs = Math.min(this.#checkAtMs, sinceMs + durationMs / 2)
        this.#expireAtMs = Math.min(this.#expireAtMs, expireAtMs)
        if (durationMs > this.#durationMs) continue
        break
      }
      suspects.add(name)
      if (nowMs < expireAtMs) this.#expireAtMs = Math.min(this.#expireAtMs, expireAtMs)
      else expired.push(this.#expire(name, observed))
    }
    for (const name of this.#flagged) {
      const observed = this.#workers.get(name)
      if (!observed?.isGone || observed.state !== 'Observed') continue
      const retryAtMs = this.#retryAtMs.get(name) ?? Number.NEGATIVE_INFINITY
      if (nowMs < retryAtMs) this.#expireAtMs = Math.min(this.#expireAtMs, retryAtMs)
      else expired.push(this.#expire(name, observed))
    }
    this.#checkAtMs = Math.min(this.#checkAtMs, this.#expireAtMs)
    const changed = this.#suspects.symmetricDifference(suspects)
    this.#suspects = suspects
    return { expired, changed, requeueAfterMs: this.#expireAtMs - nowMs }
  }

  // ---- bookkeeping

  #expire(name: string, observed: ObservedWorker): ExpiredWorker {
    observed.state = 'Confirming'
    this.#flagged.add(name)
    this.#retryAtMs.delete(name)
    const { lease } = observed
    return { worker: name, lease: lease && { uid: lease.uid, resourceVersion: lease.resourceVersion } }
  }

  #observed(name: string): ObservedWorker {
    let observed = this.#workers.get(name)
    if (!observed) {
      const initial = { lease: undefined, worker: undefined, hasRuns: false, hasExited: false, isGone: false }
      observed = { ...initial, durationMs: this.#durationMs, state: 'Observed' }
      this.#workers.set(name, observed)
    }
    return observed
  }

  /** Returns true if a decision is due: a name is new, or a suspect has renewed its Lease. A renewal by another worker only extends its deadline. */
  #refresh(name: string, observed: ObservedWorker, nowMs: number): boolean {
    const { lease, worker, hasRuns } = observed
    if (!worker && !hasRuns && !lease?.isOfWorker) {
      // A Lease of another component, such as that of leader election, is kept here in case a Worker of its name registers.
      if (!lease || lease.isUnwatched) this.#workers.delete(name)
      Object.assign(observed, { state: 'Observed', hasExited: false, isGone: false })
      this.#flagged.delete(name)
      this.#observer.forget(name)
      this.#retryAtMs.delete(name)
      if (this.#suspects.has(name)) this.#checkSoon()
      return false
    }
    const isNew = !this.#observer.isObserved(name)
    const isRenewed = this.#observer.observe(name, lease && `${lease.uid}/${lease.resourceVersion}`, nowMs)
    if (isNew) {
      this.#checkAtMs = Math.min(this.#checkAtMs, nowMs + this.#durationMs / 2)
      this.#expireAtMs = Math.min(this.#expireAtMs, nowMs + this.#durationMs)
      return true
    }
    const isBack = isRenewed && this.#suspects.has(name)
    if (isBack) this.#checkSoon()
    return isBack
  }

  #restart(name: string, observed: ObservedWorker, nowMs: number): void {
    observed.state = 'Observed'
    observed.hasExited = false
    observed.isGone = false
    this.#flagged.delete(name)
    this.#observer.restart(name, nowMs)
    this.#checkSoon()
  }

  #checkSoon(): void {
    this.#checkAtMs = Number.NEGATIVE_INFINITY
  }
}
