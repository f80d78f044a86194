import type { WorkerPool } from '../../../api/index.ts'
import { parseDuration } from '../../../kubernetes/object/index.ts'
import type { DriverWorker, ExitFailure, WorkerPurpose } from './pool-driver.ts'
import {
  domainFailure,
  initialStartState,
  nextTimeoutMs,
  registerWithinMs,
  type StartFailure,
  type StartFailureReason,
  type StartState,
  withFailed,
  withProven,
  withRegistered,
  withRemoved,
  withStarted,
  withStartFailing,
  withTimeouts,
} from './start-state.ts'

/** Longer than for processes: a Pod may need an image to be pulled and a node to be added. */
const podRegisterWithinMs = 10 * 60_000

/** Exit codes of `oarlock worker` before its registration (src/execution/worker/exit-codes.ts). */
const exitCodeReasons: Readonly<Record<number, StartFailureReason>> = {
  2: 'CreateFailed',
  4: 'RegistrationFailed',
  5: 'CredentialRejected',
}

/** While at least this many Runs wait, as many numbers are claimed in advance: in a long queue each worker that ends would cost a claim. */
const minClaimedAhead = 16
const maxClaimedAhead = 64

/** The search for a number that fits ends there. One in 32 fits if each worker is seen by 2 of 64 partitions. */
const maxSkipped = 1_000

/** The names of workers to start. `claim` is the new value of the pool's `status.started`; undefined if the names are random. */
export type StartPlan = {
  readonly workers: readonly string[]
  readonly claim: number | undefined
  /** By name of the worker: for which Run it is started; none for those that the minimum of the pool requires. */
  readonly purposes: ReadonlyMap<string, WorkerPurpose>
}

/**
 * Keeps the {@link StartState} of each pool, and the processes and Pods that drivers have started. A process that this controller did not start, such as
 * one of an earlier leader, counts as starting until it registers, so that the pool does not exceed its maximum.
 */
export class StartTracker {
  readonly #pools: ReadonlyMap<string, WorkerPool>
  readonly #isRegistered: (worker: string) => boolean
  readonly #states = new Map<string, StartState>()
  readonly #processes = new Map<string, DriverWorker>()
  #failures: { pool: string; failures: number; failure: StartFailure }[] = []
  /** By pool: the numbers that this controller has claimed and not used, from `next` to `last`; `isClaimed` once that has been written. */
  readonly #ahead = new Map<string, { readonly uid: string; next: number; readonly last: number; isClaimed: boolean }>()

  constructor(pools: ReadonlyMap<string, WorkerPool>, isRegistered: (worker: string) => boolean) {
    this.#pools = pools
    this.#isRegistered = isRegistered
  }

  /** By pool: workers that were started and have not registered, and the outcome of recent starts. */
  get states(): ReadonlyMap<string, StartState> {
    return this.#states
  }

  /** Processes and Pods that have not ended. */
  processes(): Iterable<DriverWorker> {
    return this.#processes.values()
  }

  // ---- observations; each returns true if a state has changed

  processObserved(process: DriverWorker, nowMs: number): boolean {
    const { name, pool, startedMs = nowMs, failure, trustDomain } = process
    const isKnown = this.#processes.has(name)
    if (process.isReleased) {
      this.#processes.delete(name)
      return false
    }
    this.#processes.set(name, process)
    if (isKnown) return this.#change(pool, state => withStartFailing(state, name, failure))
    if (this.#isRegistered(name) || !this.#pools.has(pool)) return false
    return this.#change(pool, state => withStartFailing(withStarted(state, name, startedMs, trustDomain), name, failure))
  }

  registered(pool: string, worker: string, nowMs: number): boolean {
    return this.#change(pool, state => withRegistered(state, worker, nowMs))
  }

  startedRun(worker: string): boolean {
    return this.#changeOf(worker, state => withProven(state, worker))
  }

  /**
   * A registered worker has deleted its Worker. If this controller observes its process or Pod, the exit code follows, and decides; else it was started by `oarlock pool`,
   * which reports nothing more of it, and has ended normally.
   */
  deregistered(worker: string): void {
    if (!this.#processes.has(worker)) this.startedRun(worker)
  }

  /** The worker was lost, its request was withdrawn, or it was not started after all. */
  removed(worker: string): boolean {
    return this.#changeOf(worker, state => withRemoved(state, worker))
  }

  /** The driver did not start the worker; `failure` is undefined if it was not asked to. */
  startFailed(pool: string, worker: string, failure: StartFailure | undefined, nowMs: number): void {
    this.#processes.delete(worker)
    if (failure) this.#fail(pool, worker, failure, nowMs)
    else this.removed(worker)
  }

  exited(worker: string, exitCode: number | undefined, failure: ExitFailure | undefined, nowMs: number): void {
    this.#processes.delete(worker)
    for (const [pool, { starting, unproven }] of this.#states) {
      const isStarting = starting.some(({ name }) => name === worker)
      if (isStarting || (exitCode !== 0 && unproven.some(({ name }) => name === worker))) {
        const outcome = exitCode === undefined ? 'was killed' : `exited with code ${exitCode}`
        const reason = failure?.reason ?? exitCodeReasons[exitCode ?? -1] ?? 'CrashedOnStartup'
        const message = failure?.message ?? `worker ${worker} ${outcome} before it ${isStarting ? 'registered' : 'started a Run'}`
        this.#fail(pool, worker, { reason, message }, nowMs)
        return
      }
    }
    this.startedRun(worker)
  }

  /** The write of a claim has ended. */
  claimSettled(pool: string, isWritten: boolean): void {
    const ahead = this.#ahead.get(pool)
    if (isWritten && ahead) ahead.isClaimed = true
    else this.#ahead.delete(pool)
  }

  poolDeleted(pool: string): void {
    this.#states.delete(pool)
    this.#ahead.delete(pool)
  }

  // ---- decisions

  /**
   * Plans the start of `count` workers, which count as starting from now on.
   * @param runs for which they are started, in order.
   * @param isNumbered whether their names are numbers that have to be claimed (`PoolDriver.claimsNames`); else they are random.
   * @param waiting how many more Runs wait for a worker.
   * @param fits whether the worker with this index may have this name; numbers that do not fit are skipped.
   */
  start(
    pool: WorkerPool,
    count: number,
    isNumbered: boolean,
    nowMs: number,
    random: () => number,
    runs: readonly WorkerPurpose[] = [],
    waiting = 0,
    fits: (index: number, worker: string) => boolean = () => true,
  ): StartPlan {
    const { name } = pool.metadata
    const numbered = isNumbered ? this.#numbers(pool, count, waiting, fits) : undefined
    const workers =
      numbered?.numbers.map(number => numberedName(pool, number)) ?? Array.from({ length: count }, () => randomName(name, random))
    const purposes = new Map<string, WorkerPurpose>()
    for (const [index, worker] of workers.entries()) {
      const purpose = runs[index]
      if (purpose) purposes.set(worker, purpose)
      this.#processes.set(worker, { name: worker, pool: name })
      this.#change(name, state => withStarted(state, worker, nowMs, purpose?.trustDomain))
    }
    return { workers, purposes, claim: numbered?.claim }
  }

  #numbers(
    pool: WorkerPool,
    count: number,
    waiting: number,
    fits: (index: number, worker: string) => boolean,
  ): { readonly numbers: readonly number[]; readonly claim: number | undefined } {
    const {
      metadata: { name, uid },
      status,
    } = pool
    const choose = (after: number) => {
      const numbers: number[] = []
      for (let number = after; numbers.length < count; ) {
        const endOfSearch = number + maxSkipped
        do number++
        while (number < endOfSearch && !fits(numbers.length, numberedName(pool, number)))
        numbers.push(number)
      }
      return { numbers, last: numbers.at(-1) ?? after }
    }
    const ahead = this.#ahead.get(name)
    if (ahead?.isClaimed && ahead.uid === uid) {
      const { numbers, last } = choose(ahead.next - 1)
      if (last <= ahead.last) {
        ahead.next = last + 1
        return { numbers, claim: undefined }
      }
    }
    const { numbers, last } = choose(status?.started ?? 0)
    const claim = last + (waiting < minClaimedAhead ? 0 : Math.min(waiting, maxClaimedAhead))
    this.#ahead.set(name, { uid, next: last + 1, last: claim, isClaimed: false })
    return { numbers, claim }
  }

  /** Fails the starts of workers that have not registered in time. Returns their names: they may hang forever and would keep their memory or node. */
  expire(nowMs: number): string[] {
    return [...this.#states].flatMap(([pool, before]) => {
      const { state, timedOut } = withTimeouts(before, nowMs, this.#registerWithinMs(pool))
      if (state === before) return []
      this.#states.set(pool, state)
      if (timedOut.length > 0) this.#report(pool, state)
      return timedOut
    })
  }

  /** When {@link expire} is due next; Infinity if no worker is starting. */
  nextTimeoutMs(): number {
    return Math.min(...[...this.#states].map(([pool, state]) => nextTimeoutMs(state, this.#registerWithinMs(pool)) ?? Infinity))
  }

  /** The failed starts since the previous call. */
  takeFailures(): readonly { readonly pool: string; readonly failures: number; readonly failure: StartFailure }[] {
    const failures = this.#failures
    this.#failures = []
    return failures
  }

  #registerWithinMs(pool: string): number {
    const spec = this.#pools.get(pool)?.spec
    if (spec?.startTimeout !== undefined) return parseDuration(spec.startTimeout)
    return spec?.mode === 'Pod' ? podRegisterWithinMs : registerWithinMs
  }

  #change(pool: string, change: (state: StartState) => StartState): boolean {
    const before = this.#states.get(pool) ?? initialStartState
    const state = change(before)
    if (state === before) return false
    this.#states.set(pool, state)
    return true
  }

  /** Changes the state of the pool that the worker belongs to; `change` returns the others as they are. */
  #changeOf(worker: string, change: (state: StartState) => StartState): boolean {
    const process = this.#processes.get(worker)
    if (process) return this.#change(process.pool, change)
    return [...this.#states.keys()].some(pool => this.#change(pool, change))
  }

  #fail(pool: string, worker: string, failure: StartFailure, nowMs: number): void {
    const domain = this.#states.get(pool)?.starting.find(({ name }) => name === worker)?.trustDomain
    if (!this.#change(pool, state => withFailed(state, worker, failure, nowMs))) return
    const state = this.#states.get(pool)!
    this.#report(pool, domainFailure(state, domain) ?? state)
  }

  #report(pool: string, { failures, lastFailure }: Pick<StartState, 'failures' | 'lastFailure'>): void {
    if (lastFailure) this.#failures.push({ pool, failures, failure: lastFailure })
  }
}

function randomName(pool: string, random: () => number): string {
  const suffix = Math.floor(random() * 0x1_0000_0000).toString(16)
  return `${pool.slice(0, 50)}-${suffix.padStart(8, '0')}`
}

/** Five characters of the UID distinguish the workers of a pool from those of a deleted pool of the same name. */
function numberedName({ metadata }: WorkerPool, number: number): string {
  return `${metadata.name.slice(0, 45)}-${metadata.uid.slice(0, 5)}-${number}`
}
