import { setTimeout } from 'node:timers/promises'
import { type Run, type RunPolicy, type RunSpec, systemNamespace, type Worker } from '../../../api/index.ts'
import { coerceError, EventRecorder, type Log, type Manager } from '../../../kubernetes/controller/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import { DispatchCore, type DispatchCoreOptions, type NewRun } from '../dispatch-core.ts'
import type { DispatchEvent, Now } from '../dispatch-event.ts'
import type { PoolDriver } from '../pool/index.ts'
import type { QueueReport, QueueReportOptions } from '../status/index.ts'
import { ActionExecutor, type ReadPendingOperations } from './execute-actions.ts'
import type { DispatchMetrics } from './metrics.ts'
import { addCaches, type Caches, observeObjects, type SharedWorkersOptions } from './observe-objects.ts'
import { reconcileLoop } from './reconcile-loop.ts'

export type DispatcherOptions = {
  readonly manager: Manager
  /** By pool mode. */
  readonly poolDrivers: { readonly Process?: PoolDriver; readonly Pod?: PoolDriver }
  readonly core: DispatchCoreOptions
  /** Default: the workers are on the manager's own server, and this dispatcher is the only one. */
  readonly shared?: SharedWorkersOptions | undefined
  /** The Worker, registered also if only its Lease registers it. */
  readonly registered: (worker: Worker) => Worker
  readonly readPendingOperations?: ReadPendingOperations | undefined
  readonly log: Log
  /** Wall clock in milliseconds. */
  readonly nowMs: () => number
  /** Monotonic clock in milliseconds. */
  readonly monotonicMs: () => number
  readonly random: () => number
}

/** What a Run is created with, so that it is assigned to `workerName`. Call `settle` when the creation has ended. */
export type NewRunPlacement = {
  readonly finalizers: readonly string[]
  readonly workerName: string
  readonly workerPod?: RunSpec['workerPod']
  readonly assignedAt: string
  readonly policy: RunPolicy
  readonly tenant?: RunSpec['tenant']
  settle(isCreated: boolean): void
}

/**
 * The shell around {@link DispatchCore}: reports objects and drivers to it, has it decide when something has changed or is due, and executes what it
 * decides. Only the leader runs it, with a new core each time.
 */
export class Dispatcher {
  readonly name = 'dispatch'
  readonly caches: Caches
  readonly #options: DispatcherOptions
  readonly #metrics: DispatchMetrics
  readonly #drivers: readonly PoolDriver[]
  #core: DispatchCore | undefined
  #observe: (event: DispatchEvent) => void = () => undefined
  #place: (run: NewRun) => NewRunPlacement | undefined = () => undefined

  constructor(options: DispatcherOptions, metrics: (core: () => DispatchCore | undefined) => DispatchMetrics) {
    this.#options = options
    this.caches = addCaches(options.manager, options.shared)
    this.#metrics = metrics(() => this.#core)
    this.#drivers = Object.values(options.poolDrivers)
    for (const driver of this.#drivers) {
      driver.listen({
        exited: (worker, exitCode, failure) => this.#observe({ kind: 'WorkerExited', worker, exitCode, failure }),
        observed: process => this.#observe({ kind: 'ProcessObserved', process }),
      })
    }
  }

  /** Runs until `signal` aborts. May be called again, for example after this process has become the leader again. */
  async start(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#lead(signal)
      } catch (thrown) {
        this.#options.log.error({ err: coerceError(thrown) }, 'decision failed, starting again in 1 s')
        await setTimeout(1_000, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  /** Runs one core until `signal` aborts, or other workers are to be used. Rejects when the core has thrown, after all actions have ended: what it knows may be inconsistent. */
  async #lead(leading: AbortSignal): Promise<void> {
    const { manager, poolDrivers, readPendingOperations, log, nowMs, shared } = this.#options
    const viewChanged = new AbortController()
    const signal = AbortSignal.any([leading, viewChanged.signal])
    const unsubscribeView = shared?.onChange(() => viewChanged.abort())
    const core = new DispatchCore({ ...this.#options.core, shared }, this.#now())
    const events = new EventRecorder({ client: manager.leaderClient, component: 'oarlock-dispatch', log, wallMs: nowMs })
    let wake: () => void = () => undefined
    let failure: { readonly thrown: unknown } | undefined
    const observe = (event: DispatchEvent) => {
      try {
        if (core.observe(event, this.#now())) wake()
      } catch (thrown) {
        failure ??= { thrown }
        wake()
      }
    }
    const executor = new ActionExecutor({
      ...{ manager, poolDrivers, events, metrics: this.#metrics, readPendingOperations, log, observe },
      shared: shared && {
        cluster: shared.cluster,
        partition: shared.partition,
        isWatched: worker => this.caches.leases.has(`${systemNamespace}/${worker}`),
      },
    })
    const onRunEnded = (run: Run) => this.#metrics.runEnded(run, core.tenantOf(run))
    this.#core = core
    const subscriptions = observeObjects({ caches: this.caches, registered: this.#options.registered, core, observe, onRunEnded })
    for (const driver of this.#drivers) {
      for (const process of driver.running()) observe({ kind: 'ProcessObserved', process })
      for (const exit of driver.ended?.() ?? []) observe({ kind: 'WorkerExited', ...exit })
    }
    this.#observe = observe
    this.#place = run => {
      try {
        const placement = core.placeNewRun(run, this.#now(), this.#options.random)
        if (!placement) return undefined
        const { object, worker, workerPod, atMs, finalizers, policy, tenant } = placement
        const settle = (isCreated: boolean) => {
          observe({ kind: 'CreationSettled', run: object })
          if (isCreated) this.#metrics.runAssigned(run.spec.pool, 0)
        }
        const assignment = {
          workerName: worker,
          ...(workerPod && { workerPod }),
          assignedAt: rfc3339(atMs),
          policy,
          ...(tenant && { tenant }),
        }
        return { finalizers, ...assignment, settle }
      } catch (thrown) {
        failure ??= { thrown }
        wake()
        return undefined
      }
    }
    try {
      await reconcileLoop(
        signal,
        loopWake => {
          wake = loopWake
        },
        async () => {
          if (failure) throw failure.thrown
          return this.#decide(core, executor)
        },
      )
    } finally {
      this.#observe = () => undefined
      this.#place = () => undefined
      this.#core = undefined
      unsubscribeView?.()
      for (const unsubscribe of subscriptions) unsubscribe()
      await executor.settled()
      await events.flush()
    }
  }

  /** @returns milliseconds until the next decision is due, undefined if none is. */
  #decide(core: DispatchCore, executor: ActionExecutor): number | undefined {
    const { manager, nowMs, random } = this.#options
    // Invariant 7: without leadership the caches may be outdated, and a decision could start processes because of it. The signal aborts soon.
    if (!manager.isLeader) return undefined
    const { actions, requeueAfterMs = Number.POSITIVE_INFINITY } = core.decide(this.#now(), random)
    for (const action of actions) executor.execute(action)
    const garbageInMs = this.#drivers.map(driver => driver.collectGarbage?.(nowMs()) ?? Number.POSITIVE_INFINITY)
    const nextMs = Math.min(requeueAfterMs, ...garbageInMs)
    return nextMs === Number.POSITIVE_INFINITY ? undefined : Math.max(1, nextMs)
  }

  /** Places a Run that is about to be created; undefined if it has to be queued, or another process is the leader. */
  placeNewRun(run: NewRun): NewRunPlacement | undefined {
    return this.#options.manager.isLeader ? this.#place(run) : undefined
  }

  /** The current queue, for `/queue`; undefined if another process is the leader. */
  report(options: QueueReportOptions): QueueReport | undefined {
    return this.#core?.report(options, this.#options.nowMs())
  }

  #now(): Now {
    return { wallMs: this.#options.nowMs(), monotonicMs: this.#options.monotonicMs() }
  }
}
