import { cacheKey, type Worker } from '../../api/index.ts'
import { coerceError, EventRecorder } from '../../kubernetes/controller/index.ts'
import { addCaches, type Caches } from './caches.ts'
import { decideDispatch } from './decide-dispatch.ts'
import type { DispatchContext, DispatcherDependencies } from './dispatch-context.ts'
import { LostWorkerController, SuspectWorkers } from './failure-detection/index.ts'
import type { DispatchMetrics } from './metrics.ts'
import { Binder, PendingReasons, QueuePositionReporter, SchedulerState, WorkerInventory } from './placement/index.ts'
import { PoolController } from './pool/index.ts'
import { QueueController, type QueueReport, type QueueReportOptions, queueReport, TenantController } from './queue/index.ts'
import { reconcileLoop } from './reconcile-loop.ts'
import { RunGarbageCollector } from './run-garbage-collector.ts'
import { RunWrites } from './run-writes.ts'
import { watchCaches } from './watch-caches.ts'
import { WorkerTemplateCache } from './worker-template-cache.ts'

/** Composes dispatch: the caches, one loop that assigns Runs and sizes pools, and one loop that detects lost workers. */
export class Dispatcher {
  readonly name = 'dispatch'
  readonly caches: Caches
  readonly #context: DispatchContext
  readonly #queue: QueueController
  readonly #tenants: TenantController
  readonly #binder: Binder
  readonly #garbageCollector: RunGarbageCollector
  readonly #positionReporter: QueuePositionReporter
  readonly #pools: PoolController
  readonly #lostWorkers: LostWorkerController
  readonly #suspects: SuspectWorkers
  readonly #workerTemplates = new WorkerTemplateCache()
  readonly #schedulerState = new SchedulerState()
  readonly #inventory: WorkerInventory
  #wake: () => void = () => undefined
  #wakeFailureDetection: () => void = () => undefined

  constructor(dependencies: DispatcherDependencies, metrics: (dispatcher: Dispatcher) => DispatchMetrics) {
    const { manager, log, nowMs } = dependencies
    this.caches = addCaches(manager)
    const wake = () => this.#wake()
    this.#inventory = new WorkerInventory(dependencies.random)
    this.#queue = new QueueController(this.caches, nowMs, dependencies.queue, (worker, load) => this.#inventory.setLoad(worker, load))
    const onEnd = (runKey: string) => {
      this.#queue.writeSettled(runKey)
      wake()
    }
    this.#context = {
      ...dependencies,
      caches: this.caches,
      events: new EventRecorder({ client: manager.leaderClient, component: 'oarlock-dispatch', log }),
      writes: new RunWrites({ manager, caches: this.caches, log, nowMs, onEnd }),
      metrics: metrics(this),
      wake,
    }
    this.#binder = new Binder(this.#context)
    this.#garbageCollector = new RunGarbageCollector(this.#context)
    this.#positionReporter = new QueuePositionReporter(this.#context)
    this.#tenants = new TenantController(this.#context, this.#queue)
    this.#pools = new PoolController(this.#context)
    this.#lostWorkers = new LostWorkerController(this.#context)
    this.#suspects = new SuspectWorkers((worker, atMs) => this.#pools.hasExited(worker) || this.#lostWorkers.isSuspect(worker, atMs))
  }

  /** Runs until `signal` aborts. May be called again, for example after this process has become the leader again. */
  async start(signal: AbortSignal): Promise<void> {
    this.#lostWorkers.reset()
    this.#pools.adoptStarting()
    this.#queue.reset()
    this.#inventory.clear()
    this.#suspects.clear()
    const subscriptions = watchCaches({
      context: this.#context,
      queue: this.#queue,
      pools: this.#pools,
      lostWorkers: this.#lostWorkers,
      workerTemplates: this.#workerTemplates,
      inventory: { update: worker => this.#updateInventory(worker), delete: name => this.#inventory.delete(name) },
      wakeFailureDetection: () => this.#wakeFailureDetection(),
    })
    try {
      await Promise.all([
        reconcileLoop(
          signal,
          wake => {
            this.#wake = wake
          },
          () => this.#runPass('dispatch', async () => this.#dispatchPass()),
        ),
        reconcileLoop(
          signal,
          wake => {
            this.#wakeFailureDetection = wake
          },
          () => this.#runPass('lease', () => this.#lostWorkers.pass()),
        ),
      ])
    } finally {
      for (const unsubscribe of subscriptions) unsubscribe()
      await this.#context.writes.settled()
      await this.#context.events.flush()
    }
  }

  /** Number of queued Runs by pool. */
  queuedByPool(): Map<string, number> {
    const { queue } = this.#queue
    const pools = new Set(this.caches.pools.list().map(({ metadata }) => metadata.name))
    for (const { requirements } of queue.equivalenceClasses()) pools.add(requirements.pool)
    return new Map([...pools].map(pool => [pool, queue.queuedIn(pool)]))
  }

  /** The current queue, for `/queue`. */
  report(options: QueueReportOptions): QueueReport {
    return queueReport(this.#queue.queue, this.caches, this.#reasons(), options, this.#context.nowMs())
  }

  async #runPass(pass: string, run: () => Promise<number | undefined>): Promise<number | undefined> {
    // Invariant 7: without leadership the caches may be outdated, and a pass could start processes because of it. The signal aborts soon.
    if (!this.#context.manager.isLeader) return undefined
    try {
      return await run()
    } catch (thrown) {
      this.#context.log.error({ err: coerceError(thrown), pass }, 'pass failed, retrying in 1 s')
      return 1_000
    }
  }

  /** @returns milliseconds until the next pass is due, undefined if none is. */
  #dispatchPass(): number | undefined {
    const nowMs = this.#context.nowMs()
    this.#pools.expireStarts(nowMs)
    this.#queue.prepare()
    const collectInMs = this.#garbageCollector.pass(this.#queue.orphans(), nowMs)
    this.#updateSuspects()
    const { queue, load } = this.#queue
    const { runs, pools } = this.caches
    const decision = decideDispatch({
      queue,
      state: this.#schedulerState,
      inventory: this.#inventory,
      cacheKeyOf: key => {
        const run = runs.get(key)
        return run && cacheKey(run.spec.stack)
      },
      limit: this.#context.writes.available,
      pools: pools.list(),
      starts: this.#pools.starts,
      workerTemplates: this.#workerTemplates.validAt(nowMs),
      nowMs,
    })
    this.#binder.bind(decision.assignments, (run, worker) => this.#queue.assignRun(run, worker))
    // The decision has already taken these slots; a Run that was deleted meanwhile gives its slot back here.
    for (const { worker } of decision.assignments) this.#inventory.setLoad(worker, load.get(worker))
    const next = Math.min(
      this.#pools.apply(decision, nowMs),
      this.#positionReporter.report(queue, () => this.#reasons(), nowMs),
      this.#tenants.writeStatus(nowMs),
      collectInMs,
    )
    return next === Infinity ? undefined : Math.max(1, next)
  }

  #reasons(): PendingReasons {
    const nowMs = this.#context.nowMs()
    return new PendingReasons({
      queue: this.#queue.queue,
      workers: this.caches.workers.list().map(worker => this.#suspects.cordoned(worker)),
      pools: this.caches.pools.list(),
      starts: this.#pools.starts,
      workerTemplates: this.#workerTemplates.validAt(nowMs),
      nowMs,
    })
  }

  #updateInventory(worker: Worker): void {
    this.#inventory.set(this.#suspects.cordoned(worker), this.#queue.load.get(worker.metadata.name))
  }

  #updateSuspects(): void {
    const changed = this.#suspects.check(this.caches.workers.keys(), this.#context.monotonicMs(), () => this.#pools.hasNewExits())
    for (const name of changed) {
      const worker = this.caches.workers.get(name)
      if (worker) this.#updateInventory(worker)
    }
  }
}
