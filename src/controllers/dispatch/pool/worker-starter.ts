import { type WorkerPool, workerPoolResource } from '../../../api/index.ts'
import { coerceError } from '../../../kubernetes/controller/index.ts'
import { isReason, parseDuration } from '../../../kubernetes/object/index.ts'
import type { DispatchContext } from '../dispatch-context.ts'
import { type PoolDriver, StartError } from './pool-driver.ts'
import {
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

/** Starts workers through the drivers, and keeps the {@link StartState} of each pool up to date. */
export class WorkerStarter {
  readonly #context: DispatchContext
  readonly #drivers: readonly PoolDriver[]
  readonly #states = new Map<string, StartState>()
  /** Pools for which the numbers of new workers are being claimed. */
  readonly #claiming = new Set<string>()

  constructor(context: DispatchContext, drivers: readonly PoolDriver[]) {
    this.#context = context
    this.#drivers = drivers
  }

  /** By pool: workers that were started and have not registered, and the outcome of recent starts. */
  get states(): ReadonlyMap<string, StartState> {
    return this.#states
  }

  isClaiming(pool: string): boolean {
    return this.#claiming.has(pool)
  }

  /** Takes over workers that were started before this process became the leader and have not registered yet. */
  adopt(): void {
    const { caches, nowMs } = this.#context
    for (const [pool, state] of this.#states) {
      this.#states.set(pool, { ...state, starting: state.starting.filter(({ name }) => !caches.workers.get(name)) })
    }
    for (const driver of this.#drivers) {
      for (const { name, pool, startedMs, failure } of driver.running()) {
        const state = this.#states.get(pool) ?? initialStartState
        if (caches.workers.get(name) || !caches.pools.get(pool) || state.starting.some(starting => starting.name === name)) continue
        this.#states.set(pool, withStartFailing(withStarted(state, name, startedMs ?? nowMs()), name, failure))
      }
    }
  }

  start(pool: WorkerPool, count: number, nowMs: number): void {
    const { name } = pool.metadata
    const isNumbered = pool.spec.mode === 'Pod'
    const names = Array.from({ length: count }, (_, index) => (isNumbered ? numberedName(pool, index + 1) : this.#randomName(name)))
    this.#states.set(
      name,
      names.reduce((state, worker) => withStarted(state, worker, nowMs), this.#states.get(name) ?? initialStartState),
    )
    if (!isNumbered) {
      for (const worker of names) void this.#startOne(pool, worker)
      return
    }
    this.#claiming.add(name)
    void this.#claimAndStart(pool, names).finally(() => {
      this.#claiming.delete(name)
      this.#context.wake()
    })
  }

  /** Stops workers that have not registered in time. */
  expire(nowMs: number): void {
    for (const [pool, before] of this.#states) {
      const { state, timedOut } = withTimeouts(before, nowMs, this.#registerWithinMs(pool))
      if (state === before) continue
      if (timedOut.length > 0) this.#recordFailure(pool, state)
      else this.#states.set(pool, state)
      // A worker that has not registered by now may hang forever and would keep its memory, or its node.
      for (const driver of this.#drivers) for (const name of timedOut) driver.stop(name, { force: false })
    }
  }

  forgetDeletedPools(): void {
    for (const pool of this.#states.keys()) if (!this.#context.caches.pools.get(pool)) this.#states.delete(pool)
  }

  /** When {@link expire} is due next; Infinity if no worker is starting. */
  nextTimeoutMs(): number {
    return Math.min(...[...this.#states].map(([pool, state]) => nextTimeoutMs(state, this.#registerWithinMs(pool)) ?? Infinity))
  }

  registered(pool: string, worker: string): void {
    const state = this.#states.get(pool)
    if (state) this.#states.set(pool, withRegistered(state, worker, this.#context.nowMs()))
  }

  startedRun(worker: string): void {
    this.#change(state => withProven(state, worker))
  }

  removed(worker: string): void {
    this.#change(state => withRemoved(state, worker))
  }

  startFailing(worker: string, failure: StartFailure | undefined): void {
    this.#change(state => withStartFailing(state, worker, failure))
  }

  exited(worker: string, exitCode: number | undefined, failure: StartFailure | undefined): void {
    for (const [pool, state] of this.#states) {
      const isStarting = state.starting.some(({ name }) => name === worker)
      if (isStarting || (exitCode !== 0 && state.unproven.some(({ name }) => name === worker))) {
        const outcome = exitCode === undefined ? 'was killed' : `exited with code ${exitCode}`
        const message = `worker ${worker} ${outcome} before it ${isStarting ? 'registered' : 'started a Run'}`
        this.#startFailed(pool, worker, failure ?? { reason: exitCodeReasons[exitCode ?? -1] ?? 'CrashedOnStartup', message })
      } else this.startedRun(worker)
    }
  }

  #registerWithinMs(pool: string): number {
    const spec = this.#context.caches.pools.get(pool)?.spec
    if (spec?.startTimeout !== undefined) return parseDuration(spec.startTimeout)
    return spec?.mode === 'Pod' ? podRegisterWithinMs : registerWithinMs
  }

  /** Applies `change` to the state of each pool; only the pool of the worker changes. */
  #change(change: (state: StartState) => StartState): void {
    for (const [pool, before] of this.#states) {
      const state = change(before)
      if (state === before) continue
      this.#states.set(pool, state)
      this.#context.wake()
    }
  }

  /**
   * Claims the numbers in the status of the pool before any Pod is created. A controller that crashes now, or one that is no longer the leader
   * and does not know it yet, therefore never creates a Pod twice, and no name is used again for another worker (invariant 2).
   */
  async #claimAndStart(pool: WorkerPool, names: readonly string[]): Promise<void> {
    const { caches, manager, log } = this.#context
    const { name, resourceVersion } = pool.metadata
    try {
      const status = { started: (pool.status?.started ?? 0) + names.length }
      caches.pools.applyLocal(await manager.leaderClient.resource(workerPoolResource).patchStatus(name, { status }, { resourceVersion }))
    } catch (thrown) {
      for (const worker of names) this.removed(worker)
      if (!isReason(thrown, 'Conflict')) log.warn({ err: coerceError(thrown), pool: name }, 'failed to claim the numbers of new workers')
      return
    }
    await Promise.all(names.map(worker => this.#startOne(pool, worker)))
  }

  async #startOne(pool: WorkerPool, worker: string): Promise<void> {
    const { mode } = pool.spec
    try {
      const driver = mode === 'External' ? undefined : this.#context.poolDrivers[mode]
      if (!driver) throw new Error(`this controller does not start workers of mode ${mode}`)
      await driver.start(pool, worker)
    } catch (thrown) {
      const message = `failed to start worker ${worker}: ${coerceError(thrown).message}`
      const failure = thrown instanceof StartError ? thrown.failure : ({ reason: 'CreateFailed', message } as const)
      this.#startFailed(pool.metadata.name, worker, failure)
    }
  }

  #startFailed(pool: string, worker: string, failure: StartFailure): void {
    const before = this.#states.get(pool) ?? initialStartState
    const state = withFailed(before, worker, failure, this.#context.nowMs())
    if (state === before) return
    this.#recordFailure(pool, state)
    this.#context.wake()
  }

  #recordFailure(pool: string, state: StartState): void {
    const { caches, events, log, metrics } = this.#context
    const { failures, lastFailure } = state
    this.#states.set(pool, state)
    if (!lastFailure) return
    metrics.startFailed(pool, lastFailure.reason)
    log.warn({ pool, failures, reason: lastFailure.reason }, lastFailure.message)
    const object = caches.pools.get(pool)
    if (object) events.warning(object, lastFailure.reason, lastFailure.message)
  }

  #randomName(pool: string): string {
    const suffix = Math.floor(this.#context.random() * 0x1_0000_0000).toString(16)
    return `${pool.slice(0, 50)}-${suffix.padStart(8, '0')}`
  }
}

/** Five characters of the UID distinguish the workers of a pool from those of a deleted pool of the same name. */
function numberedName({ metadata, status }: WorkerPool, offset: number): string {
  return `${metadata.name.slice(0, 45)}-${metadata.uid.slice(0, 5)}-${(status?.started ?? 0) + offset}`
}
