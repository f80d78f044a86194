import { systemNamespace, type WorkerPool, type WorkerPoolStatus, workerPoolResource, workerResource } from '../../../api/index.ts'
import { coerceError, patchStatusIfChanged } from '../../../kubernetes/controller/index.ts'
import { isReason, parseDuration, setCondition } from '../../../kubernetes/object/index.ts'
import type { DispatchContext } from '../dispatch-context.ts'
import { decideOrphans, type OrphanSince } from './decide-orphans.ts'
import type { PoolsDecision } from './decide-pools.ts'
import { type PoolDriver, StartError } from './pool-driver.ts'
import {
  currentFailure,
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

/** A pool's numbers change with every Run; people look at them less often. */
const statusIntervalMs = 500
/** Images are pulled and nodes are added in this time. */
const podRegisterWithinMs = 10 * 60_000

/** With what `oarlock worker` ends when it could not register (src/execution/worker/exit-codes.ts). */
const exitCodeReasons: Readonly<Record<number, StartFailureReason>> = {
  2: 'CreateFailed',
  4: 'RegistrationFailed',
  5: 'CredentialRejected',
}

/** The shell around `decidePools`: starts and drains workers, knows which are starting, writes the status of pools. */
export class PoolController {
  readonly #context: DispatchContext
  readonly #starts = new Map<string, StartState>()
  /** Workers whose process has exited and whose objects are still there. */
  readonly #exited = new Set<string>()
  #hasNewExits = false
  readonly #statusWrites = new Map<string, number>()
  /** Pools whose next numbers are being claimed. */
  readonly #claiming = new Set<string>()
  #orphansSince: ReadonlyMap<string, OrphanSince> = new Map()

  constructor(context: DispatchContext) {
    this.#context = context
    for (const driver of this.#drivers) {
      driver.listen({
        exited: (worker, exitCode, failure) => this.#onExit(worker, exitCode, failure),
        startFailing: (worker, failure) => this.#change(state => withStartFailing(state, worker, failure)),
      })
    }
  }

  /** By pool: workers that were started and have not registered, and how starting has gone lately. */
  get starts(): ReadonlyMap<string, StartState> {
    return this.#starts
  }

  hasExited(worker: string): boolean {
    return this.#exited.has(worker)
  }

  /** True when a process of a registered worker has exited since it was asked last. */
  hasNewExits(): boolean {
    const has = this.#hasNewExits
    this.#hasNewExits = false
    return has
  }

  /** A worker of the pool has registered. */
  workerRegistered(pool: string, worker: string): void {
    const state = this.#starts.get(pool)
    if (state) this.#starts.set(pool, withRegistered(state, worker, this.#context.nowMs()))
  }

  /** A worker has begun with a Run. */
  workerStartedRun(worker: string): void {
    this.#change(state => withProven(state, worker))
  }

  /** A worker's object is gone. */
  workerDeleted(worker: string): void {
    this.#exited.delete(worker)
    this.#change(state => withRemoved(state, worker))
  }

  /** Workers that were started before this process led, and that have not registered yet, count as starting. */
  adoptStarting(): void {
    const { caches, nowMs } = this.#context
    for (const [pool, state] of this.#starts) {
      this.#starts.set(pool, { ...state, starting: state.starting.filter(({ name }) => !caches.workers.get(name)) })
    }
    for (const driver of this.#drivers) {
      for (const { name, pool, startedMs, failure } of driver.running()) {
        const state = this.#starts.get(pool) ?? initialStartState
        if (caches.workers.get(name) || !caches.pools.get(pool) || state.starting.some(one => one.name === name)) continue
        this.#starts.set(pool, withStartFailing(withStarted(state, name, startedMs ?? nowMs()), name, failure))
      }
    }
  }

  /** Gives up workers that should have registered by now. */
  expireStarts(nowMs: number): void {
    for (const [pool, before] of this.#starts) {
      const { state, timedOut } = withTimeouts(before, nowMs, this.#registerWithinMs(pool))
      if (state === before) continue
      if (timedOut.length > 0) this.#recordFailure(pool, state)
      else this.#starts.set(pool, state)
      // What has not registered by now may hang for ever, and would keep its memory, or its node.
      for (const driver of this.#drivers) for (const name of timedOut) driver.stop(name, { force: false })
    }
  }

  /** Does what was decided. Returns after how many milliseconds there may be more to do. */
  apply(decision: PoolsDecision, nowMs: number): number {
    const { caches, metrics } = this.#context
    for (const { pool, count, reason } of decision.start) {
      const object = caches.pools.get(pool)
      if (!object || this.#claiming.has(pool)) continue
      metrics.scaled(pool, 'up', reason, count)
      this.#start(object, count, nowMs)
    }
    for (const { worker, pool, reason } of decision.drain) {
      if (this.#drain(worker)) metrics.scaled(pool, 'down', reason, 1)
    }
    for (const pool of this.#starts.keys()) if (!caches.pools.get(pool)) this.#starts.delete(pool)
    const timeouts = [...this.#starts].flatMap(([pool, state]) => nextTimeoutMs(state, this.#registerWithinMs(pool)) ?? [])
    return Math.min(
      decision.requeueAfterMs ?? Number.POSITIVE_INFINITY,
      this.#writeStatus(decision, nowMs),
      this.#stopOrphans(nowMs),
      ...timeouts.map(atMs => atMs - nowMs),
      ...this.#drivers.map(driver => driver.collectGarbage?.(nowMs) ?? Number.POSITIVE_INFINITY),
    )
  }

  get #drivers(): PoolDriver[] {
    return Object.values(this.#context.poolDrivers)
  }

  #registerWithinMs(pool: string): number {
    const spec = this.#context.caches.pools.get(pool)?.spec
    if (spec?.startTimeout !== undefined) return parseDuration(spec.startTimeout)
    return spec?.mode === 'Pod' ? podRegisterWithinMs : registerWithinMs
  }

  /** Applies `change` to the state of each pool: only the one that knows the worker changes. */
  #change(change: (state: StartState) => StartState): void {
    for (const [pool, before] of this.#starts) {
      const state = change(before)
      if (state === before) continue
      this.#starts.set(pool, state)
      this.#context.wake()
    }
  }

  // ---- starting

  #start(pool: WorkerPool, count: number, nowMs: number): void {
    const { name } = pool.metadata
    const isNumbered = pool.spec.mode === 'Pod'
    const names = Array.from({ length: count }, (_, index) => (isNumbered ? numberedName(pool, index + 1) : this.#randomName(name)))
    this.#starts.set(
      name,
      names.reduce((state, worker) => withStarted(state, worker, nowMs), this.#starts.get(name) ?? initialStartState),
    )
    if (!isNumbered) {
      for (const worker of names) void this.#startOne(pool, worker)
      return
    }
    this.#claiming.add(name)
    void this.#claim(pool, names).finally(() => {
      this.#claiming.delete(name)
      this.#context.wake()
    })
  }

  /**
   * Notes on the pool that these numbers are taken, before anything is made: a controller that crashes now, or one that no longer
   * leads and does not know it, never makes a Pod twice, and no name is used again for another worker (invariant 2).
   */
  async #claim(pool: WorkerPool, names: readonly string[]): Promise<void> {
    const { caches, manager, log } = this.#context
    const { name, resourceVersion } = pool.metadata
    try {
      const status = { started: (pool.status?.started ?? 0) + names.length }
      caches.pools.applyLocal(await manager.leaderClient.resource(workerPoolResource).patchStatus(name, { status }, { resourceVersion }))
    } catch (thrown) {
      for (const worker of names) this.#change(state => withRemoved(state, worker))
      if (!isReason(thrown, 'Conflict')) log.warn({ err: coerceError(thrown), pool: name }, 'numbers of new workers could not be claimed')
      return
    }
    await Promise.all(names.map(worker => this.#startOne(pool, worker)))
  }

  async #startOne(pool: WorkerPool, worker: string): Promise<void> {
    const { mode } = pool.spec
    try {
      const driver = mode === 'External' ? undefined : this.#context.poolDrivers[mode]
      if (!driver) throw new Error(`this controller starts no workers of mode ${mode}`)
      await driver.start(pool, worker)
    } catch (thrown) {
      const message = `worker ${worker} could not be started: ${coerceError(thrown).message}`
      const failure = thrown instanceof StartError ? thrown.failure : ({ reason: 'CreateFailed', message } as const)
      this.#onStartFailed(pool.metadata.name, worker, failure)
    }
  }

  #randomName(pool: string): string {
    const suffix = Math.floor(this.#context.random() * 0x1_0000_0000).toString(16)
    return `${pool.slice(0, 50)}-${suffix.padStart(8, '0')}`
  }

  #onExit(worker: string, exitCode: number | undefined, failure: StartFailure | undefined): void {
    if (this.#context.caches.workers.has(worker)) {
      this.#exited.add(worker)
      this.#hasNewExits = true
    }
    for (const [pool, state] of this.#starts) {
      const isStarting = state.starting.some(({ name }) => name === worker)
      if (isStarting || (exitCode !== 0 && state.unproven.some(({ name }) => name === worker))) {
        const how = exitCode === undefined ? 'was killed' : `exited with code ${exitCode}`
        const message = `worker ${worker} ${how} before it ${isStarting ? 'registered' : 'had a Run'}`
        this.#onStartFailed(pool, worker, failure ?? { reason: exitCodeReasons[exitCode ?? -1] ?? 'CrashedOnStartup', message })
      } else this.#change(before => withProven(before, worker))
    }
    this.#context.wake()
  }

  #onStartFailed(pool: string, worker: string, failure: StartFailure): void {
    const before = this.#starts.get(pool) ?? initialStartState
    const state = withFailed(before, worker, failure, this.#context.nowMs())
    if (state === before) return
    this.#recordFailure(pool, state)
    this.#context.wake()
  }

  #recordFailure(pool: string, state: StartState): void {
    const { caches, events, log, metrics } = this.#context
    const { failures, lastFailure } = state
    this.#starts.set(pool, state)
    if (!lastFailure) return
    metrics.startFailed(pool, lastFailure.reason)
    log.warn({ pool, failures, reason: lastFailure.reason }, lastFailure.message)
    const object = caches.pools.get(pool)
    if (object) events.warning(object, lastFailure.reason, lastFailure.message)
  }

  // ---- ending

  /** Returns false when there was nothing to do. */
  #drain(name: string): boolean {
    const { caches, manager, log } = this.#context
    const worker = caches.workers.get(name)
    if (!worker || worker.spec.drain) return false
    const { resourceVersion } = worker.metadata
    const patch = { spec: { drain: true } }
    manager.leaderClient
      .resource(workerResource)
      .patch(name, patch, { type: 'merge', resourceVersion })
      .then(
        drained => caches.workers.applyLocal(drained),
        (thrown: unknown) => log.debug({ err: coerceError(thrown), worker: name }, 'spare worker could not be drained'),
      )
    return true
  }

  #stopOrphans(nowMs: number): number {
    const { caches, log } = this.#context
    const starting = new Set([...this.#starts.values()].flatMap(state => state.starting.map(({ name }) => name)))
    const { stop, since, requeueAfterMs } = decideOrphans({
      running: this.#drivers.flatMap(driver => driver.running()),
      isRegistered: worker => caches.workers.get(worker) !== undefined,
      isStarting: worker => starting.has(worker),
      isAlive: worker =>
        caches.leases.get(`${systemNamespace}/${worker}`) !== undefined || caches.runs.byIndex('activeByWorker', worker).length > 0,
      since: this.#orphansSince,
      nowMs,
    })
    this.#orphansSince = since
    for (const { name, force } of stop) {
      log.warn({ worker: name, force }, 'a worker that is not registered still runs and is ended')
      for (const driver of this.#drivers) driver.stop(name, { force })
    }
    return requeueAfterMs ?? Number.POSITIVE_INFINITY
  }

  // ---- telling

  /** Returns after how many milliseconds a status that was held back is to be written. */
  #writeStatus({ pools, errors }: PoolsDecision, nowMs: number): number {
    const { caches, manager, log } = this.#context
    let requeueAfterMs = Number.POSITIVE_INFINITY
    for (const pool of caches.pools.list()) {
      const { name, generation } = pool.metadata
      const numbers = pools.get(name)
      if (!numbers || this.#claiming.has(name)) continue
      const ready = readiness(this.#starts.get(name), errors.get(name))
      const conditions = setCondition(pool.status?.conditions, { type: 'Ready', ...ready, observedGeneration: generation ?? 1 }, nowMs)
      const next: WorkerPoolStatus = { ...pool.status, ...numbers, observedGeneration: generation ?? 1, conditions }
      const lastMs = this.#statusWrites.get(name) ?? Number.NEGATIVE_INFINITY
      if (nowMs - lastMs < statusIntervalMs) {
        requeueAfterMs = Math.min(requeueAfterMs, statusIntervalMs - (nowMs - lastMs))
        continue
      }
      if (JSON.stringify(pool.status) === JSON.stringify(next)) continue
      this.#statusWrites.set(name, nowMs)
      patchStatusIfChanged(manager.leaderClient.resource(workerPoolResource), pool, next).then(
        written => caches.pools.applyLocal(written),
        (thrown: unknown) => log.debug({ err: coerceError(thrown), pool: name }, 'status of the pool was not written'),
      )
    }
    return requeueAfterMs
  }
}

/** The condition `Ready` of a pool: can workers be started? */
function readiness(state: StartState | undefined, specError: string | undefined) {
  const failure = state && currentFailure(state)
  if (state && failure) {
    const message = state.failures > 0 ? `${failure.message}; ${state.failures} failed in a row` : failure.message
    return { status: 'False', reason: failure.reason, message } as const
  }
  if (specError !== undefined) return { status: 'False', reason: 'InvalidSchedule', message: specError } as const
  return { status: 'True', reason: 'Ready', message: 'Workers can be started' } as const
}

/** Five characters of the UID keep the workers of a pool that was deleted and made again apart. */
function numberedName({ metadata, status }: WorkerPool, offset: number): string {
  return `${metadata.name.slice(0, 45)}-${metadata.uid.slice(0, 5)}-${(status?.started ?? 0) + offset}`
}
