import { isEnded, type Run } from '../../../api/index.ts'
import { objectKey } from '../../../kubernetes/object/index.ts'
import { type Caches, hasStack } from '../caches.ts'
import { type WorkerLoad, type WorkerLoads, withRun } from '../worker-load.ts'
import { RunQueue, type RunQueueOptions } from './run-queue.ts'
import { type Requirements, requestOf, requirementsOf } from './run-request.ts'
import { TenantIndex } from './tenants.ts'

/** How often long Runs are charged and unused accounts removed. */
const tickIntervalMs = 30_000

/** Updates the {@link RunQueue} from the caches, one Run at a time, and keeps the load of each Worker. */
export class QueueController {
  readonly #caches: Caches
  readonly #options: RunQueueOptions
  readonly #nowMs: () => number
  readonly #onLoad: (worker: string, load: WorkerLoad | undefined) => void
  queue: RunQueue
  /** By key of an active Run: its Worker, and the resources it uses there. */
  readonly #assignments = new Map<string, { readonly worker: string; readonly requirements: Requirements }>()
  readonly #load = new Map<string, WorkerLoad>()
  /** Keys of Runs whose Stack is not in the cache. */
  readonly #orphans = new Set<string>()
  #tenants = new TenantIndex()
  #areSettingsStale = true
  #tickedMs = -Infinity

  /** @param onLoad called when the load of a Worker changes. */
  constructor(
    caches: Caches,
    nowMs: () => number,
    options: RunQueueOptions,
    onLoad: (worker: string, load: WorkerLoad | undefined) => void,
  ) {
    this.#caches = caches
    this.#onLoad = onLoad
    this.#options = options
    this.#nowMs = nowMs
    this.queue = this.#newQueue()
  }

  get load(): WorkerLoads {
    return this.#load
  }

  get tenants(): TenantIndex {
    return this.#tenants
  }

  /** Keys of Runs whose Stack is not in the cache; for `run-garbage-collector.ts`. */
  orphans(): Iterable<string> {
    return this.#orphans
  }

  /** Rebuilds all state from the caches, when this process becomes the leader. Recent usage of tenants is taken from their ended Runs. */
  reset(): void {
    this.queue = this.#newQueue()
    this.#assignments.clear()
    this.#load.clear()
    this.#orphans.clear()
    this.#areSettingsStale = true
    this.#refreshSettings()
    for (const run of this.#caches.runs.list()) {
      const { assignedAt } = run.spec
      const { finishedAt } = run.status ?? {}
      if (isEnded(run) && assignedAt && finishedAt) {
        const endedAtMs = this.#notAfterNowMs(finishedAt)
        this.queue.chargePastRun(run.metadata.namespace ?? '', endedAtMs - this.#notAfterNowMs(assignedAt), endedAtMs)
      }
      this.observeRun(run)
    }
  }

  /** To be called when Tenants, labels of namespaces or limits of pools have changed. */
  settingsChanged(): void {
    this.#areSettingsStale = true
  }

  /** To be called before each decision: applies changed settings, and charges long Runs from time to time. */
  prepare(): void {
    this.#refreshSettings()
    const nowMs = this.#nowMs()
    if (nowMs - this.#tickedMs < tickIntervalMs) return
    this.#tickedMs = nowMs
    this.queue.tick(nowMs)
  }

  /** Records a Run that is new or has changed. */
  observeRun(run: Run): void {
    const key = objectKey(run)
    const { workerName } = run.spec
    if (isEnded(run)) this.#finish(key, run)
    else if (workerName !== undefined) {
      this.#orphans.delete(key)
      this.assignRun(run, workerName)
      if (!hasStack(this.#caches, run)) this.#orphans.add(key)
    } else this.#enqueue(key, run)
  }

  /** Removes a Run that was deleted from the server. */
  removeRun(run: Run): void {
    const key = objectKey(run)
    this.#orphans.delete(key)
    this.queue.remove(key)
    this.queue.end(key, this.#nowMs())
    this.#releaseWorker(key)
  }

  /** Records that the Run is assigned to a Worker, or that the assignment is being written. */
  assignRun(run: Run, worker: string): void {
    const key = objectKey(run)
    const { namespace = '' } = run.metadata
    const sinceMs = this.#notAfterNowMs(run.spec.assignedAt)
    this.queue.start({ key, namespace, pool: run.spec.pool, concurrencyKey: run.spec.stack.concurrencyKey, sinceMs })
    if (this.#assignments.get(key)?.worker === worker) return
    this.#releaseWorker(key)
    const requirements = requirementsOf(run.spec)
    this.#assignments.set(key, { worker, requirements })
    this.#setLoad(worker, withRun(this.#load.get(worker), 1, requirements))
  }

  /** Records that a write to the Run has ended. If its assignment failed, the Run is queued again. */
  writeSettled(key: string): void {
    const run = this.#caches.runs.get(key)
    if (!run || isEnded(run) || run.spec.workerName !== undefined) return
    if (this.queue.isRunning(key)) {
      this.queue.undoStart(key)
      const worker = this.#assignments.get(key)?.worker
      this.#releaseWorker(key)
      const load = worker === undefined ? undefined : this.#load.get(worker)
      if (worker !== undefined && load) this.#setLoad(worker, { ...load, total: load.total - 1 })
    }
    this.#enqueue(key, run)
  }

  workerDeleted(worker: string): void {
    if ((this.#load.get(worker)?.active ?? 0) === 0) this.#setLoad(worker, undefined)
  }

  #enqueue(key: string, run: Run): void {
    const isOrphan = !hasStack(this.#caches, run)
    if (isOrphan) this.#orphans.add(key)
    else this.#orphans.delete(key)
    if (this.queue.isRunning(key)) return
    if (isOrphan || run.spec.cancel || run.metadata.deletionTimestamp) this.queue.remove(key)
    else this.queue.put(requestOf(run))
  }

  #finish(key: string, run: Run): void {
    this.#orphans.delete(key)
    this.queue.remove(key)
    this.queue.end(key, this.#notAfterNowMs(run.status?.finishedAt))
    const { workerName, assignedAt } = run.spec
    if (this.#assignments.has(key)) {
      this.#releaseWorker(key)
      return
    }
    const worker = workerName === undefined ? undefined : this.#caches.workers.get(workerName)
    if (workerName === undefined || !worker || this.#load.has(workerName)) return
    // A Run assigned before the Worker was created belongs to a previous Worker of this name. Both times are whole seconds, rounded down.
    if (assignedAt === undefined || Date.parse(assignedAt) >= Date.parse(worker.metadata.creationTimestamp)) {
      // The Run was observed only after its end; it still counts towards the total of a one-shot worker.
      this.#setLoad(workerName, { active: 0, total: 1 })
    }
  }

  #releaseWorker(key: string): void {
    const assignment = this.#assignments.get(key)
    if (!assignment) return
    this.#assignments.delete(key)
    const { worker, requirements } = assignment
    const load = withRun(this.#load.get(worker), -1, requirements)
    if (load.active === 0 && !this.#caches.workers.get(worker)) this.#setLoad(worker, undefined)
    else this.#setLoad(worker, load)
  }

  #setLoad(worker: string, load: WorkerLoad | undefined): void {
    if (load) this.#load.set(worker, load)
    else this.#load.delete(worker)
    this.#onLoad(worker, load)
  }

  #newQueue(): RunQueue {
    return new RunQueue({ ...this.#options, nowMs: this.#nowMs() })
  }

  /** Limits times to the present. A clock that is ahead, or a worker that reports a false time, would overcharge its tenant: charges grow exponentially with time. */
  #notAfterNowMs(time: string | undefined): number {
    const nowMs = this.#nowMs()
    return time === undefined ? nowMs : Math.min(nowMs, Date.parse(time))
  }

  #refreshSettings(): void {
    if (!this.#areSettingsStale) return
    this.#areSettingsStale = false
    const { tenants, namespaces, pools } = this.#caches
    this.#tenants = new TenantIndex(tenants.list(), namespaces.list())
    this.queue.setTenants(this.#tenants)
    const limits = pools.list().flatMap(({ metadata, spec }) => {
      const limit = spec.limits?.maxRunning
      return limit === undefined ? [] : [[metadata.name, limit] as const]
    })
    this.queue.setPoolLimits(new Map(limits))
  }
}
