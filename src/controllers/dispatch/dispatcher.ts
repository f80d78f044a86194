import { cacheKey, isEnded, type Run, type Stack, type Worker } from '../../api/index.ts'
import { coerceError, EventRecorder } from '../../kubernetes/controller/index.ts'
import { equalJson, type KubeObject } from '../../kubernetes/object/index.ts'
import { addCaches, type Caches, leaseToken } from './caches.ts'
import { decideDispatch } from './decide-dispatch.ts'
import type { DispatcherParts, Shared } from './dispatch-parts.ts'
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
const doubtEveryMs = 250

/** Wires dispatch: caches in, one loop that places Runs and sizes pools, one that buries dead workers. */
export class Dispatcher {
  readonly name = 'dispatch'
  readonly caches: Caches
  readonly #shared: Shared
  readonly #queue: QueueController
  readonly #tenants: TenantController
  readonly #placer: Binder
  readonly #tidier: RunGarbageCollector
  readonly #teller: QueuePositionReporter
  readonly #pools: PoolController
  readonly #undertaker: LostWorkerController
  readonly #examples = new WorkerTemplateCache()
  readonly #memory = new SchedulerState()
  readonly #hands: WorkerInventory
  /** Workers that get nothing, as they may be dead. */
  #doubtful = new Set<string>()
  #doubtedAtMs = -Infinity
  #kick: () => void = () => undefined
  #kickLost: () => void = () => undefined

  constructor(parts: DispatcherParts, metrics: (dispatcher: Dispatcher) => DispatchMetrics) {
    const { manager, log, nowMs } = parts
    this.caches = addCaches(manager)
    const kick = () => this.#kick()
    this.#hands = new WorkerInventory(parts.random)
    this.#queue = new QueueController(this.caches, nowMs, parts.queue, (worker, load) => this.#hands.setLoad(worker, load))
    const onEnd = (runKey: string) => {
      this.#queue.writeEnded(runKey)
      kick()
    }
    this.#shared = {
      ...parts,
      caches: this.caches,
      events: new EventRecorder({ client: manager.leaderClient, component: 'oarlock-dispatch', log }),
      writes: new RunWrites({ manager, caches: this.caches, log, nowMs, onEnd }),
      metrics: metrics(this),
      kick,
    }
    this.#placer = new Binder(this.#shared)
    this.#tidier = new RunGarbageCollector(this.#shared)
    this.#teller = new QueuePositionReporter(this.#shared)
    this.#tenants = new TenantController(this.#shared, this.#queue)
    this.#pools = new PoolController(this.#shared)
    this.#undertaker = new LostWorkerController(this.#shared)
  }

  /** Works until `signal` aborts; may be started again, as after leadership was regained. */
  async start(signal: AbortSignal): Promise<void> {
    this.#undertaker.forget()
    this.#pools.adopt()
    this.#queue.reset()
    this.#hands.clear()
    this.#doubtful.clear()
    const unsubscribe = this.#subscribe()
    try {
      await Promise.all([
        reconcileLoop(
          signal,
          kick => {
            this.#kick = kick
          },
          () => this.#guarded('dispatch', async () => this.#dispatchPass()),
        ),
        reconcileLoop(
          signal,
          kick => {
            this.#kickLost = kick
          },
          () => this.#guarded('lease', () => this.#undertaker.pass()),
        ),
      ])
    } finally {
      for (const stop of unsubscribe) stop()
      await this.#shared.writes.settled()
      await this.#shared.events.flush()
    }
  }

  /** Runs that wait, by pool. */
  queuedByPool(): Map<string, number> {
    const { queue } = this.#queue
    const pools = new Set(this.caches.pools.list().map(({ metadata }) => metadata.name))
    for (const { needs } of queue.shapes()) pools.add(needs.pool)
    return new Map([...pools].map(pool => [pool, queue.queuedIn(pool)]))
  }

  /** The queue as it is now, for people and scripts. */
  report(options: QueueReportOptions): QueueReport {
    return queueReport(this.#queue.queue, this.caches, this.#reasons(), options, this.#shared.nowMs())
  }

  #subscribe(): (() => void)[] {
    const { runs, workers, pools, stacks, leases, tenants, namespaces } = this.caches
    const kick = () => this.#kick()
    const kickLost = () => this.#kickLost()
    const newTerms = () => {
      this.#queue.termsChanged()
      kick()
    }
    const termsOf = {
      added: newTerms,
      updated: (old: { metadata: KubeObject['metadata'] }, { metadata }: { metadata: KubeObject['metadata'] }) => {
        if (old.metadata.generation !== metadata.generation) newTerms()
      },
      deleted: ({ metadata }: { metadata: KubeObject['metadata'] }) => {
        this.#examples.forget(metadata.name)
        newTerms()
      },
    }
    const ofStack = (stack: Stack) => {
      for (const run of runs.byIndex('ofStack', stack.metadata.uid)) this.#queue.see(run)
      kick()
    }
    return [
      runs.onChange({
        added: run => {
          this.#queue.see(run)
          kick()
        },
        updated: (old, run) => {
          this.#queue.see(run)
          if (!isEnded(old) && isEnded(run)) this.#shared.metrics.runEnded(run, this.#queue.queue.tenantOf(run.metadata.namespace ?? ''))
          if (hasBegun(run) && !hasBegun(old)) this.#pools.proven(run.spec.workerName!)
          // Progress of a Run is none of our business: it would be a pass for each resource an engine finishes.
          if (isNews(old, run)) kick()
          const { workerName } = run.spec
          // A pass looks at every Lease: not for each Run that a worker gets whose Lease is watched anyway.
          if (old.spec.workerName !== workerName && (workerName === undefined || !this.#undertaker.isObserved(workerName))) kickLost()
        },
        deleted: run => {
          this.#queue.forget(run)
          this.#shared.writes.forget(run)
          kick()
        },
      }),
      workers.onChange({
        added: worker => {
          const { metadata, spec } = worker
          this.#see(worker)
          this.#examples.see(worker)
          this.#pools.registered(spec.pool, metadata.name)
          kick()
          kickLost()
        },
        updated: (_, worker) => {
          this.#see(worker)
          this.#examples.see(worker)
          kick()
        },
        deleted: worker => {
          const { metadata } = worker
          this.#examples.gone(worker, this.#shared.nowMs())
          this.#hands.delete(metadata.name)
          this.#pools.forget(metadata.name)
          this.#queue.workerGone(metadata.name)
          kick()
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
        added: kickLost,
        updated: (_, lease) => this.#undertaker.seeRenewal(lease.metadata.name, leaseToken(lease)),
      }),
    ]
  }

  async #guarded(what: string, pass: () => Promise<number | undefined>): Promise<number | undefined> {
    // Invariant 7: what was decided by old caches may be wrong now, and processes would be started for it. The signal aborts in a moment.
    if (!this.#shared.manager.isLeader) return undefined
    try {
      return await pass()
    } catch (thrown) {
      this.#shared.log.error({ err: coerceError(thrown), pass: what }, 'pass failed, trying again in a second')
      return 1_000
    }
  }

  #dispatchPass(): number | undefined {
    const nowMs = this.#shared.nowMs()
    this.#pools.expireStarts(nowMs)
    this.#queue.beforePass()
    const tidyInMs = this.#tidier.pass(this.#queue.orphans(), nowMs)
    this.#doubt()
    const { queue, load } = this.#queue
    const { runs, pools } = this.caches
    const decision = decideDispatch({
      queue,
      memory: this.#memory,
      hands: this.#hands,
      cacheKeyOf: key => {
        const run = runs.get(key)
        return run && cacheKey(run.spec.stack)
      },
      limit: this.#shared.writes.room,
      pools: pools.list(),
      starts: this.#pools.starts,
      examples: this.#examples.at(nowMs),
      nowMs,
    })
    this.#placer.assign(decision.assignments, (run, worker) => this.#queue.placed(run, worker))
    // One whose Run is gone meanwhile has its slot back.
    for (const { worker } of decision.assignments) this.#hands.setLoad(worker, load.get(worker))
    const next = Math.min(
      this.#pools.act(decision, nowMs),
      this.#teller.tell(queue, () => this.#reasons(), nowMs),
      this.#tenants.act(nowMs),
      tidyInMs,
    )
    return next === Infinity ? undefined : Math.max(1, next)
  }

  #reasons(): PendingReasons {
    const { starts } = this.#pools
    const { queue } = this.#queue
    const nowMs = this.#shared.nowMs()
    const workers = this.caches.workers.list().map(worker => this.#asUsable(worker))
    return new PendingReasons({
      queue,
      workers,
      pools: this.caches.pools.list(),
      starts,
      examples: this.#examples.at(nowMs),
      nowMs,
    })
  }

  #see(worker: Worker): void {
    this.#hands.set(this.#asUsable(worker), this.#queue.load.get(worker.metadata.name))
  }

  /** A worker that exited, or that is late with its renewals, gets nothing more: it may be dead already. */
  #asUsable(worker: Worker): Worker {
    return this.#doubtful.has(worker.metadata.name) ? { ...worker, spec: { ...worker.spec, drain: true } } : worker
  }

  /** Looks which workers may be dead. */
  #doubt(): void {
    const nowMs = this.#shared.monotonicMs()
    if (nowMs - this.#doubtedAtMs < doubtEveryMs && !this.#pools.hasNewExits()) return
    this.#doubtedAtMs = nowMs
    const before = this.#doubtful
    this.#doubtful = new Set()
    for (const name of this.caches.workers.keys()) {
      if (this.#pools.hasExited(name) || this.#undertaker.isDoubtful(name, nowMs)) this.#doubtful.add(name)
    }
    for (const name of before.symmetricDifference(this.#doubtful)) {
      const worker = this.caches.workers.get(name)
      if (worker) this.#see(worker)
    }
  }
}

/** Its worker works on it, or has: not one that was lost before. */
function hasBegun({ spec, status }: Run): boolean {
  const phase = status?.phase ?? 'Queued'
  return spec.workerName !== undefined && phase !== 'Queued' && phase !== 'Assigned' && phase !== 'Lost'
}

function isNews(old: Run, run: Run): boolean {
  return (
    old.status?.phase !== run.status?.phase ||
    old.spec.workerName !== run.spec.workerName ||
    old.spec.cancel !== run.spec.cancel ||
    old.metadata.deletionTimestamp !== run.metadata.deletionTimestamp
  )
}
