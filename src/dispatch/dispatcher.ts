import { isEnded, type Run, type Worker } from '../api/index.ts'
import { coerceError, EventRecorder } from '../controller/index.ts'
import { Undertaker } from './bury/index.ts'
import { addCaches, type Caches, hasStack, leaseToken } from './caches.ts'
import { decideDispatch } from './decide-dispatch.ts'
import type { DispatcherParts, Shared } from './dispatch-parts.ts'
import { kickLoop } from './kick-loop.ts'
import type { DispatchMetrics } from './metrics.ts'
import { Placer } from './place/index.ts'
import { PoolKeeper } from './pool/index.ts'
import { RunWrites } from './run-writes.ts'
import { tidyRuns } from './tidy-runs.ts'
import type { WorkerLoad } from './worker-load.ts'

/** Wires dispatch: caches in, one loop that places Runs and sizes pools, one that buries dead workers. */
export class Dispatcher {
  readonly name = 'dispatch'
  readonly caches: Caches
  readonly #shared: Shared
  readonly #placer: Placer
  readonly #pools: PoolKeeper
  readonly #undertaker: Undertaker
  #kick: () => void = () => undefined
  #kickLost: () => void = () => undefined

  constructor(parts: DispatcherParts, metrics: (dispatcher: Dispatcher) => DispatchMetrics) {
    const { manager, log, nowMs } = parts
    this.caches = addCaches(manager)
    const kick = () => this.#kick()
    this.#shared = {
      ...parts,
      caches: this.caches,
      events: new EventRecorder({ client: manager.client, component: 'oarlock-dispatch', log }),
      writes: new RunWrites({ manager, caches: this.caches, log, nowMs, onEnd: kick }),
      metrics: metrics(this),
      kick,
    }
    this.#placer = new Placer(this.#shared)
    this.#pools = new PoolKeeper(this.#shared)
    this.#undertaker = new Undertaker(this.#shared)
  }

  /** Works until `signal` aborts; may be started again, as after leadership was regained. */
  async start(signal: AbortSignal): Promise<void> {
    this.#undertaker.forget()
    this.#pools.adopt()
    const unsubscribe = this.#subscribe()
    try {
      await Promise.all([
        kickLoop(
          signal,
          kick => {
            this.#kick = kick
          },
          () => this.#guarded('dispatch', async () => this.#dispatchPass()),
        ),
        kickLoop(
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
    const { pools, runs } = this.caches
    const counts = new Map(pools.list().map(({ metadata }) => [metadata.name, 0]))
    for (const run of runs.byIndex('unassigned', 'yes')) counts.set(run.spec.pool, (counts.get(run.spec.pool) ?? 0) + 1)
    return counts
  }

  #subscribe(): (() => void)[] {
    const { runs, workers, pools, stacks, leases } = this.caches
    const kick = () => this.#kick()
    const kickLost = () => this.#kickLost()
    return [
      runs.onChange({
        added: kick,
        updated: (old, run) => {
          if (!isEnded(old) && isEnded(run)) this.#shared.metrics.runEnded(run.spec.type, run.status!.phase)
          // Progress of a Run is none of our business: it would be a pass for each resource an engine finishes.
          if (isNews(old, run)) kick()
          if (old.spec.workerName !== run.spec.workerName) kickLost()
        },
        deleted: kick,
      }),
      workers.onChange({
        added: ({ metadata, spec }) => {
          this.#pools.registered(spec.pool, metadata.name)
          kick()
          kickLost()
        },
        updated: kick,
        deleted: ({ metadata }) => {
          this.#pools.forget(metadata.name)
          kick()
        },
      }),
      pools.onChange({
        added: kick,
        updated: (old, pool) => {
          if (old.metadata.generation !== pool.metadata.generation) kick()
        },
        deleted: kick,
      }),
      stacks.onChange({ added: kick, deleted: kick }),
      leases.onChange({
        added: kickLost,
        updated: (_, lease) => this.#undertaker.seeRenewal(lease.metadata.name, leaseToken(lease)),
      }),
    ]
  }

  async #guarded(what: string, pass: () => Promise<number | undefined>): Promise<number | undefined> {
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
    const tidyInMs = tidyRuns(this.#shared)
    const decision = decideDispatch({
      queued: this.#assignable(),
      workers: this.#usableWorkers(),
      load: this.#load(),
      pools: this.caches.pools.list(),
      starts: this.#pools.starts,
      nowMs,
    })
    this.#placer.assign(decision.assignments)
    this.#placer.tell(decision.waiting)
    const next = Math.min(this.#pools.act(decision, nowMs), tidyInMs)
    return next === Infinity ? undefined : Math.max(1, next)
  }

  #assignable(): Run[] {
    return this.caches.runs.byIndex('unassigned', 'yes').filter(run => {
      if (run.spec.cancel || run.metadata.deletionTimestamp || this.#shared.writes.has(run)) return false
      return hasStack(this.caches, run)
    })
  }

  /** A worker that exited, or that is late with its renewals, gets nothing more: it may be dead already. */
  #usableWorkers(): Worker[] {
    const nowMs = this.#shared.monotonicMs()
    return this.caches.workers.list().map(worker => {
      const { name } = worker.metadata
      const isUsable = !this.#pools.hasExited(name) && !this.#undertaker.isDoubtful(name, nowMs)
      return isUsable ? worker : { ...worker, spec: { ...worker.spec, drain: true } }
    })
  }

  #load(): Map<string, WorkerLoad> {
    const { runs, workers } = this.caches
    const load = new Map<string, WorkerLoad>()
    const given = this.#shared.writes.given()
    for (const { metadata } of workers.list()) {
      const { name } = metadata
      const extra = given.get(name) ?? 0
      load.set(name, { active: runs.byIndex('activeOf', name).length + extra, total: runs.byIndex('everOf', name).length + extra })
    }
    return load
  }
}

function isNews(old: Run, run: Run): boolean {
  return (
    old.status?.phase !== run.status?.phase ||
    old.spec.workerName !== run.spec.workerName ||
    old.spec.cancel !== run.spec.cancel ||
    old.metadata.deletionTimestamp !== run.metadata.deletionTimestamp
  )
}
