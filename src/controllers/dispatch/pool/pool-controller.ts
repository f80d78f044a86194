import { systemNamespace, workerResource } from '../../../api/index.ts'
import { coerceError } from '../../../kubernetes/controller/index.ts'
import type { DispatchContext } from '../dispatch-context.ts'
import { decideOrphans, type OrphanSince } from './decide-orphans.ts'
import type { PoolsDecision } from './decide-pools.ts'
import type { PoolDriver } from './pool-driver.ts'
import { PoolStatusWriter } from './pool-status-writer.ts'
import type { StartFailure, StartState } from './start-state.ts'
import { WorkerStarter } from './worker-starter.ts'

/** The shell around `decidePools`: has workers started and drained, stops orphans, and has the status of pools written. */
export class PoolController {
  readonly #context: DispatchContext
  readonly #drivers: readonly PoolDriver[]
  readonly #starter: WorkerStarter
  readonly #statusWriter: PoolStatusWriter
  /** Workers whose process has exited and whose Worker object still exists. */
  readonly #exited = new Set<string>()
  #hasNewExits = false
  #orphansSince: ReadonlyMap<string, OrphanSince> = new Map()

  constructor(context: DispatchContext) {
    this.#context = context
    this.#drivers = Object.values(context.poolDrivers)
    this.#starter = new WorkerStarter(context, this.#drivers)
    this.#statusWriter = new PoolStatusWriter(context, this.#starter)
    for (const driver of this.#drivers) {
      driver.listen({
        exited: (worker, exitCode, failure) => this.#onExit(worker, exitCode, failure),
        startFailing: (worker, failure) => this.#starter.startFailing(worker, failure),
      })
    }
  }

  /** By pool: workers that were started and have not registered, and the outcome of recent starts. */
  get starts(): ReadonlyMap<string, StartState> {
    return this.#starter.states
  }

  hasExited(worker: string): boolean {
    return this.#exited.has(worker)
  }

  /** Reports whether a process of a registered worker has exited since the previous call. */
  hasNewExits(): boolean {
    const has = this.#hasNewExits
    this.#hasNewExits = false
    return has
  }

  workerRegistered(pool: string, worker: string): void {
    this.#starter.registered(pool, worker)
  }

  workerStartedRun(worker: string): void {
    this.#starter.startedRun(worker)
  }

  workerDeleted(worker: string): void {
    this.#exited.delete(worker)
    this.#starter.removed(worker)
  }

  /** Takes over workers that were started before this process became the leader and have not registered yet. */
  adoptStarting(): void {
    this.#starter.adopt()
  }

  /** Stops workers that have not registered in time. */
  expireStarts(nowMs: number): void {
    this.#starter.expire(nowMs)
  }

  /**
   * Executes the decision.
   * @returns milliseconds until the next decision is due; Infinity if none is.
   */
  apply(decision: PoolsDecision, nowMs: number): number {
    const { caches, metrics } = this.#context
    for (const { pool, count, reason } of decision.start) {
      const object = caches.pools.get(pool)
      if (!object || this.#starter.isClaiming(pool)) continue
      metrics.scaled(pool, 'up', reason, count)
      this.#starter.start(object, count, nowMs)
    }
    for (const { worker, pool, reason } of decision.drain) {
      if (this.#drain(worker)) metrics.scaled(pool, 'down', reason, 1)
    }
    this.#starter.forgetDeletedPools()
    return Math.min(
      decision.requeueAfterMs ?? Number.POSITIVE_INFINITY,
      this.#statusWriter.write(decision, nowMs),
      this.#stopOrphans(nowMs),
      this.#starter.nextTimeoutMs() - nowMs,
      ...this.#drivers.map(driver => driver.collectGarbage?.(nowMs) ?? Number.POSITIVE_INFINITY),
    )
  }

  #onExit(worker: string, exitCode: number | undefined, failure: StartFailure | undefined): void {
    if (this.#context.caches.workers.has(worker)) {
      this.#exited.add(worker)
      this.#hasNewExits = true
    }
    this.#starter.exited(worker, exitCode, failure)
    this.#context.wake()
  }

  /** Returns false if the worker was deleted or is already draining. */
  #drain(name: string): boolean {
    const { caches, manager, log } = this.#context
    const worker = caches.workers.get(name)
    if (!worker || worker.spec.drain) return false
    const { resourceVersion } = worker.metadata
    manager.leaderClient
      .resource(workerResource)
      .patch(name, { spec: { drain: true } }, { type: 'merge', resourceVersion })
      .then(
        drained => caches.workers.applyLocal(drained),
        (thrown: unknown) => log.debug({ err: coerceError(thrown), worker: name }, 'failed to drain a surplus worker'),
      )
    return true
  }

  #stopOrphans(nowMs: number): number {
    const { caches, log } = this.#context
    const starting = new Set([...this.starts.values()].flatMap(state => state.starting.map(({ name }) => name)))
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
      log.warn({ worker: name, force }, 'stopping a worker process that has no Worker object')
      for (const driver of this.#drivers) driver.stop(name, { force })
    }
    return requeueAfterMs ?? Number.POSITIVE_INFINITY
  }
}
