import { type WorkerPoolStatus, workerPoolResource, workerResource } from '../../api/index.ts'
import { coerceError, patchStatusIfChanged } from '../../controller/index.ts'
import { setCondition } from '../../kube/index.ts'
import type { Shared } from '../dispatch-parts.ts'
import type { PoolNumbers, PoolsDecision } from './decide-pools.ts'
import { nextTimeoutMs, noStarts, type StartState, withFailed, withRegistered, withStarted, withTimeouts } from './start-state.ts'

/** A pool's numbers change with every Run; people look at them less often. */
const poolStatusEveryMs = 500

/** The shell around `decidePools`: starts and drains workers, knows which are starting, writes the status of pools. */
export class PoolKeeper {
  readonly #shared: Shared
  readonly #starts = new Map<string, StartState>()
  /** Workers whose process has exited and whose objects are still there. */
  readonly #exited = new Set<string>()
  readonly #statusWrites = new Map<string, number>()

  constructor(shared: Shared) {
    this.#shared = shared
    shared.poolDriver.onExit((worker, exitCode) => this.#onExit(worker, exitCode))
  }

  /** By pool: workers that were started and have not registered, and how starting has gone lately. */
  get starts(): ReadonlyMap<string, StartState> {
    return this.#starts
  }

  hasExited(worker: string): boolean {
    return this.#exited.has(worker)
  }

  /** A worker of the pool has registered. */
  registered(pool: string, worker: string): void {
    const state = this.#starts.get(pool)
    if (state) this.#starts.set(pool, withRegistered(state, worker))
  }

  /** A worker's object is gone. */
  forget(worker: string): void {
    this.#exited.delete(worker)
  }

  /** Workers that were started before this process led, and that have not registered yet, count as starting. */
  adopt(): void {
    const { caches, poolDriver, nowMs } = this.#shared
    for (const [pool, state] of this.#starts) {
      this.#starts.set(pool, { ...state, starting: state.starting.filter(({ name }) => !caches.workers.get(name)) })
    }
    for (const worker of poolDriver.running()) {
      const pool = worker.slice(0, worker.lastIndexOf('-'))
      const state = this.#starts.get(pool) ?? noStarts
      if (caches.workers.get(worker) || !caches.pools.get(pool) || state.starting.some(({ name }) => name === worker)) continue
      this.#starts.set(pool, withStarted(state, worker, nowMs()))
    }
  }

  /** Gives up workers that should have registered by now. */
  expireStarts(nowMs: number): void {
    for (const [pool, state] of this.#starts) {
      const next = withTimeouts(state, nowMs)
      if (next !== state) this.#failed(pool, next)
    }
  }

  /** Does what was decided. Returns after how many milliseconds there may be more to do. */
  act(decision: PoolsDecision, nowMs: number): number {
    for (const { pool, count } of decision.start) this.#start(pool, count, nowMs)
    for (const worker of decision.drain) this.#drain(worker)
    const statusInMs = this.#writeStatus(decision.pools, nowMs)
    const timeouts = [...this.#starts.values()].map(nextTimeoutMs).filter(atMs => atMs !== undefined)
    return Math.min(decision.requeueAfterMs ?? Infinity, statusInMs, ...timeouts.map(atMs => atMs - nowMs))
  }

  #start(poolName: string, count: number, nowMs: number): void {
    const { caches, poolDriver, random } = this.#shared
    const pool = caches.pools.get(poolName)
    if (!pool) return
    for (let i = 0; i < count; i++) {
      const suffix = Math.floor(random() * 0x1_0000_0000).toString(16)
      const worker = `${poolName.slice(0, 50)}-${suffix.padStart(8, '0')}`
      this.#starts.set(poolName, withStarted(this.#starts.get(poolName) ?? noStarts, worker, nowMs))
      poolDriver.start(pool, worker).catch((thrown: unknown) => {
        this.#startFailed(poolName, worker, `worker ${worker} could not be started: ${coerceError(thrown).message}`)
      })
    }
  }

  #onExit(worker: string, exitCode: number | undefined): void {
    if (this.#shared.caches.workers.get(worker)) this.#exited.add(worker)
    const how = exitCode === undefined ? 'was killed' : `exited with code ${exitCode}`
    for (const [pool, state] of this.#starts) {
      if (state.starting.some(({ name }) => name === worker))
        this.#startFailed(pool, worker, `worker ${worker} ${how} before it registered`)
    }
    this.#shared.kick()
  }

  #startFailed(pool: string, worker: string, why: string): void {
    const before = this.#starts.get(pool) ?? noStarts
    const state = withFailed(before, worker, why, this.#shared.nowMs())
    if (state === before) return
    this.#failed(pool, state)
    this.#shared.kick()
  }

  #failed(pool: string, state: StartState): void {
    const { caches, events, log } = this.#shared
    this.#starts.set(pool, state)
    log.warn({ pool, failures: state.failures }, state.lastError)
    const object = caches.pools.get(pool)
    if (object) events.warning(object, 'WorkerStartFailed', state.lastError)
  }

  #drain(name: string): void {
    const { caches, manager, log } = this.#shared
    const worker = caches.workers.get(name)
    if (!worker || worker.spec.drain) return
    const { resourceVersion } = worker.metadata
    const patch = { spec: { drain: true } }
    manager.client
      .resource(workerResource)
      .patch(name, patch, { type: 'merge', resourceVersion })
      .then(
        drained => caches.workers.applyLocal(drained),
        (thrown: unknown) => log.debug({ err: coerceError(thrown), worker: name }, 'spare worker could not be drained'),
      )
  }

  /** Returns after how many milliseconds a status that was held back is to be written. */
  #writeStatus(numbersOf: ReadonlyMap<string, PoolNumbers>, nowMs: number): number {
    const { caches, manager, log } = this.#shared
    let againInMs = Infinity
    for (const pool of caches.pools.list()) {
      const { name, generation } = pool.metadata
      const numbers = numbersOf.get(name)
      if (!numbers) continue
      const state = this.#starts.get(name)
      const isFailing = state !== undefined && state.failures > 0
      const ready = isFailing
        ? ({ status: 'False', reason: 'WorkerStartFailed', message: `${state.lastError}; ${state.failures} failed in a row` } as const)
        : ({ status: 'True', reason: 'Ready', message: 'Workers can be started' } as const)
      const conditions = setCondition(pool.status?.conditions, { type: 'Ready', ...ready, observedGeneration: generation ?? 1 }, nowMs)
      const next: WorkerPoolStatus = { ...numbers, observedGeneration: generation ?? 1, conditions }
      const lastMs = this.#statusWrites.get(name) ?? -Infinity
      if (nowMs - lastMs < poolStatusEveryMs) {
        againInMs = Math.min(againInMs, poolStatusEveryMs - (nowMs - lastMs))
        continue
      }
      const isSame = JSON.stringify(pool.status) === JSON.stringify({ ...pool.status, ...next })
      if (isSame) continue
      this.#statusWrites.set(name, nowMs)
      patchStatusIfChanged(manager.client.resource(workerPoolResource), pool, next).then(
        written => caches.pools.applyLocal(written),
        (thrown: unknown) => log.debug({ err: coerceError(thrown), pool: name }, 'status of the pool was not written'),
      )
    }
    return againInMs
  }
}
