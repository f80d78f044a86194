import { cacheKey, isEnded, type Run, type Stack, type Worker } from '../../api/index.ts'
import { coerceError, EventRecorder } from '../../kubernetes/controller/index.ts'
import { equalJson, type KubeObject } from '../../kubernetes/object/index.ts'
import { addCaches, type Caches, leaseVersionOf } from './caches.ts'
import { decideDispatch } from './decide-dispatch.ts'
import type { DispatchContext, DispatcherDependencies } from './dispatch-context.ts'
import { LostWorkerController } from './failure-detection/index.ts'
import type { DispatchMetrics } from './metrics.ts'
import { Binder, PendingReasons, QueuePositionReporter, SchedulerState, WorkerInventory } from './placement/index.ts'
import { PoolController } from './pool/index.ts'
import { QueueController, type QueueReport, type QueueReportOptions, queueReport, TenantController } from './queue/index.ts'
import { reconcileLoop } from './reconcile-loop.ts'
import { RunGarbageCollector } from './run-garbage-collector.ts'
import { RunWrites } from './run-writes.ts'
import { WorkerTemplateCache } from './worker-template-cache.ts'

/** A worker that goes silent is noticed so much later than it could be, at most: to look costs a step for each worker. */
const suspectCheckIntervalMs = 250

/** Wires dispatch: caches in, one loop that places Runs and sizes pools, one that buries dead workers. */
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
  readonly #workerTemplates = new WorkerTemplateCache()
  readonly #schedulerState = new SchedulerState()
  readonly #inventory: WorkerInventory
  /** Workers that get nothing, as they may be dead. */
  #suspects = new Set<string>()
  #suspectsCheckedAtMs = -Infinity
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
  }

  /** Works until `signal` aborts; may be started again, as after leadership was regained. */
  async start(signal: AbortSignal): Promise<void> {
    this.#lostWorkers.reset()
    this.#pools.adoptStarting()
    this.#queue.reset()
    this.#inventory.clear()
    this.#suspects.clear()
    const unsubscribe = this.#subscribe()
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
      for (const stop of unsubscribe) stop()
      await this.#context.writes.settled()
      await this.#context.events.flush()
    }
  }

  /** Runs that wait, by pool. */
  queuedByPool(): Map<string, number> {
    const { queue } = this.#queue
    const pools = new Set(this.caches.pools.list().map(({ metadata }) => metadata.name))
    for (const { requirements } of queue.equivalenceClasses()) pools.add(requirements.pool)
    return new Map([...pools].map(pool => [pool, queue.queuedIn(pool)]))
  }

  /** The queue as it is now, for people and scripts. */
  report(options: QueueReportOptions): QueueReport {
    return queueReport(this.#queue.queue, this.caches, this.#reasons(), options, this.#context.nowMs())
  }

  #subscribe(): (() => void)[] {
    const { runs, workers, pools, stacks, leases, tenants, namespaces } = this.caches
    const wake = () => this.#wake()
    const wakeFailureDetection = () => this.#wakeFailureDetection()
    const newTerms = () => {
      this.#queue.settingsChanged()
      wake()
    }
    const termsOf = {
      added: newTerms,
      updated: (old: { metadata: KubeObject['metadata'] }, { metadata }: { metadata: KubeObject['metadata'] }) => {
        if (old.metadata.generation !== metadata.generation) newTerms()
      },
      deleted: ({ metadata }: { metadata: KubeObject['metadata'] }) => {
        this.#workerTemplates.invalidate(metadata.name)
        newTerms()
      },
    }
    const ofStack = (stack: Stack) => {
      for (const run of runs.byIndex('ofStack', stack.metadata.uid)) this.#queue.observeRun(run)
      wake()
    }
    return [
      runs.onChange({
        added: run => {
          this.#queue.observeRun(run)
          wake()
        },
        updated: (old, run) => {
          this.#queue.observeRun(run)
          if (!isEnded(old) && isEnded(run)) this.#context.metrics.runEnded(run, this.#queue.queue.tenantOf(run.metadata.namespace ?? ''))
          if (hasStarted(run) && !hasStarted(old)) this.#pools.workerStartedRun(run.spec.workerName!)
          // Progress of a Run is none of our business: it would be a pass for each resource an engine finishes.
          if (affectsScheduling(old, run)) wake()
          const { workerName } = run.spec
          // A pass looks at every Lease: not for each Run that a worker gets whose Lease is watched anyway.
          if (old.spec.workerName !== workerName && (workerName === undefined || !this.#lostWorkers.isObserved(workerName)))
            wakeFailureDetection()
        },
        deleted: run => {
          this.#queue.removeRun(run)
          this.#context.writes.forget(run)
          wake()
        },
      }),
      workers.onChange({
        added: worker => {
          const { metadata, spec } = worker
          this.#updateInventory(worker)
          this.#workerTemplates.observe(worker)
          this.#pools.workerRegistered(spec.pool, metadata.name)
          wake()
          wakeFailureDetection()
        },
        updated: (_, worker) => {
          this.#updateInventory(worker)
          this.#workerTemplates.observe(worker)
          wake()
        },
        deleted: worker => {
          const { metadata } = worker
          this.#workerTemplates.workerDeleted(worker, this.#context.nowMs())
          this.#inventory.delete(metadata.name)
          this.#pools.workerDeleted(metadata.name)
          this.#queue.workerDeleted(metadata.name)
          wake()
        },
      }),
      pools.onChange(termsOf),
      tenants.onChange(termsOf),
      namespaces.onChange({
        added: newTerms,
        updated: (old, namespace) => {
          if (!equalJson(old.metadata.labels, namespace.metadata.labels)) newTerms()
        },
        deleted: newTerms,
      }),
      stacks.onChange({ added: ofStack, deleted: ofStack }),
      leases.onChange({
        added: wakeFailureDetection,
        updated: (_, lease) => this.#lostWorkers.observeRenewal(lease.metadata.name, leaseVersionOf(lease)),
      }),
    ]
  }

  async #runPass(what: string, pass: () => Promise<number | undefined>): Promise<number | undefined> {
    // Invariant 7: what was decided by old caches may be wrong now, and processes would be started for it. The signal aborts in a moment.
    if (!this.#context.manager.isLeader) return undefined
    try {
      return await pass()
    } catch (thrown) {
      this.#context.log.error({ err: coerceError(thrown), pass: what }, 'pass failed, trying again in a second')
      return 1_000
    }
  }

  #dispatchPass(): number | undefined {
    const nowMs = this.#context.nowMs()
    this.#pools.expireStarts(nowMs)
    this.#queue.prepare()
    const tidyInMs = this.#garbageCollector.pass(this.#queue.orphans(), nowMs)
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
      limit: this.#context.writes.availableWrites,
      pools: pools.list(),
      starts: this.#pools.starts,
      workerTemplates: this.#workerTemplates.validAt(nowMs),
      nowMs,
    })
    this.#binder.bind(decision.assignments, (run, worker) => this.#queue.assignRun(run, worker))
    // One whose Run is gone meanwhile has its slot back.
    for (const { worker } of decision.assignments) this.#inventory.setLoad(worker, load.get(worker))
    const next = Math.min(
      this.#pools.apply(decision, nowMs),
      this.#positionReporter.report(queue, () => this.#reasons(), nowMs),
      this.#tenants.writeStatus(nowMs),
      tidyInMs,
    )
    return next === Infinity ? undefined : Math.max(1, next)
  }

  #reasons(): PendingReasons {
    const { starts } = this.#pools
    const { queue } = this.#queue
    const nowMs = this.#context.nowMs()
    const workers = this.caches.workers.list().map(worker => this.#withoutSuspects(worker))
    return new PendingReasons({
      queue,
      workers,
      pools: this.caches.pools.list(),
      starts,
      workerTemplates: this.#workerTemplates.validAt(nowMs),
      nowMs,
    })
  }

  #updateInventory(worker: Worker): void {
    this.#inventory.set(this.#withoutSuspects(worker), this.#queue.load.get(worker.metadata.name))
  }

  /** A worker that exited, or that is late with its renewals, gets nothing more: it may be dead already. */
  #withoutSuspects(worker: Worker): Worker {
    return this.#suspects.has(worker.metadata.name) ? { ...worker, spec: { ...worker.spec, drain: true } } : worker
  }

  /** Looks which workers may be dead. */
  #updateSuspects(): void {
    const nowMs = this.#context.monotonicMs()
    if (nowMs - this.#suspectsCheckedAtMs < suspectCheckIntervalMs && !this.#pools.hasNewExits()) return
    this.#suspectsCheckedAtMs = nowMs
    const before = this.#suspects
    this.#suspects = new Set()
    for (const name of this.caches.workers.keys()) {
      if (this.#pools.hasExited(name) || this.#lostWorkers.isSuspect(name, nowMs)) this.#suspects.add(name)
    }
    for (const name of before.symmetricDifference(this.#suspects)) {
      const worker = this.caches.workers.get(name)
      if (worker) this.#updateInventory(worker)
    }
  }
}

/** Its worker works on it, or has: not one that was lost before. */
function hasStarted({ spec, status }: Run): boolean {
  const phase = status?.phase ?? 'Queued'
  return spec.workerName !== undefined && phase !== 'Queued' && phase !== 'Assigned' && phase !== 'Lost'
}

function affectsScheduling(old: Run, run: Run): boolean {
  return (
    old.status?.phase !== run.status?.phase ||
    old.spec.workerName !== run.spec.workerName ||
    old.spec.cancel !== run.spec.cancel ||
    old.metadata.deletionTimestamp !== run.metadata.deletionTimestamp
  )
}
