import {
  isEnded,
  labels,
  type Run,
  runResource,
  type Stack,
  stackResource,
  systemNamespace,
  type Worker,
  type WorkerPool,
  type WorkerPoolStatus,
  workerPoolResource,
  workerResource,
} from '../api/index.ts'
import { coerceError, EventRecorder, type Informer, type Log, type Manager, patchStatusIfChanged } from '../controller/index.ts'
import { describeResource, isReason, type KubeObject, objectKey, rfc3339, setCondition } from '../kube/index.ts'
import { type DispatchDecision, decideDispatch, type Waiting, type WorkerLoad } from './decide-dispatch.ts'
import { type Death, decideLost, notTaken, takeWithinMs } from './decide-lost.ts'
import { kickLoop } from './kick-loop.ts'
import { LeaseObserver } from './lease-observer.ts'
import type { DispatchMetrics } from './metrics.ts'
import type { PoolDriver } from './pool-driver.ts'
import { nextTimeoutMs, noStarts, type StartState, withFailed, withRegistered, withStarted, withTimeouts } from './start-state.ts'

/**
 * Held by a Run from the moment it has a Worker: deleting it by hand cancels it, and it stays until its engine has
 * stopped. Otherwise the next Run of the Stack could start beside it (invariant 1).
 */
export const assignedFinalizer = 'oarlock.dev/assigned'

type LeaseBody = { spec?: { renewTime?: string | null; holderIdentity?: string | null } }
const leaseResource = describeResource<LeaseBody>({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  scope: 'Namespaced',
})

/** Writes under way at the same time: enough to keep a server busy, few enough that it stays fair to others. */
const maxInFlight = 64
/** A pool's numbers change with every Run; people look at them less often. */
const poolStatusEveryMs = 500
/** So many of the first Runs in the queue are told what they wait for; the others wait for the same. */
const toldRuns = 20

export type DispatcherParts = {
  readonly manager: Manager
  readonly poolDriver: PoolDriver
  readonly leaseDurationMs: number
  readonly log: Log
  /** Wall clock in milliseconds, for what people read. */
  readonly nowMs: () => number
  /** Monotonic clock in milliseconds, for Leases (invariant 2). */
  readonly monotonicMs: () => number
  readonly random: () => number
}

/** The shell around {@link decideDispatch} and {@link decideLost}: reads caches, writes what was decided. */
export class Dispatcher {
  readonly name = 'dispatch'
  readonly runs: Informer<{ spec: Run['spec']; status?: Run['status'] }>
  readonly workers: Informer<{ spec: Worker['spec']; status?: Worker['status'] }>
  readonly #pools: Informer<{ spec: WorkerPool['spec']; status?: WorkerPool['status'] }>
  readonly #stacks: Informer<{ spec: Stack['spec']; status?: Stack['status'] }>
  readonly #leases: Informer<LeaseBody>
  readonly #parts: DispatcherParts
  readonly #log: Log
  readonly #events: EventRecorder
  /** Keys of Runs that a write is under way for, with the Worker they are being given to, if that is what it does. */
  readonly #inFlight = new Map<string, string | undefined>()
  readonly #starts = new Map<string, StartState>()
  /** Workers whose process has exited and whose objects are still there. */
  readonly #exited = new Set<string>()
  /** Writes under way; stopping waits for them. */
  readonly #writes = new Set<Promise<void>>()
  readonly #burying = new Set<string>()
  readonly #poolWrites = new Map<string, number>()
  #observer: LeaseObserver
  #metrics: DispatchMetrics
  #kick: () => void = () => undefined
  #kickLost: () => void = () => undefined

  constructor(parts: DispatcherParts, metrics: (dispatcher: Dispatcher) => DispatchMetrics) {
    const { manager } = parts
    this.#parts = parts
    this.#log = parts.log
    this.#events = new EventRecorder({ client: manager.client, component: 'oarlock-dispatch', log: parts.log })
    this.#observer = new LeaseObserver(parts.leaseDurationMs)
    this.runs = manager.informer(runResource, {
      indexes: {
        queued: run => (!run.spec.workerName && !isEnded(run) ? [run.spec.pool] : []),
        unassigned: run => (!run.spec.workerName && !isEnded(run) ? ['yes'] : []),
        activeOf: run => (run.spec.workerName && !isEnded(run) ? [run.spec.workerName] : []),
        active: run => (run.spec.workerName && !isEnded(run) ? ['yes'] : []),
        everOf: run => (run.spec.workerName ? [run.spec.workerName] : []),
        leaving: run => (run.metadata.deletionTimestamp && run.metadata.finalizers?.includes(assignedFinalizer) ? ['yes'] : []),
      },
    })
    this.workers = manager.informer(workerResource)
    this.#pools = manager.informer(workerPoolResource)
    this.#stacks = manager.informer(stackResource)
    this.#leases = manager.informer(leaseResource, { namespace: systemNamespace })
    this.#metrics = metrics(this)
    parts.poolDriver.onExit((worker, exitCode) => this.#onExit(worker, exitCode))
  }

  /** Works until `signal` aborts; may be started again, as after leadership was regained. */
  async start(signal: AbortSignal): Promise<void> {
    this.#observer = new LeaseObserver(this.#parts.leaseDurationMs)
    this.#adoptStarts()
    const unsubscribe = this.#subscribe()
    try {
      await Promise.all([
        kickLoop(
          signal,
          kick => {
            this.#kick = kick
          },
          () => this.#guarded('dispatch', () => this.#dispatchPass()),
        ),
        kickLoop(
          signal,
          kick => {
            this.#kickLost = kick
          },
          () => this.#guarded('lease', () => this.#lostPass()),
        ),
      ])
    } finally {
      for (const stop of unsubscribe) stop()
      await Promise.all(this.#writes)
      await this.#events.flush()
    }
  }

  /** Runs that wait, by pool. */
  queuedByPool(): Map<string, number> {
    const counts = new Map(this.#pools.list().map(({ metadata }) => [metadata.name, 0]))
    for (const run of this.runs.byIndex('unassigned', 'yes')) counts.set(run.spec.pool, (counts.get(run.spec.pool) ?? 0) + 1)
    return counts
  }

  #subscribe(): (() => void)[] {
    const kick = () => this.#kick()
    const kickLost = () => this.#kickLost()
    return [
      this.runs.onChange({
        added: kick,
        updated: (old, run) => {
          if (!isEnded(old) && isEnded(run)) this.#metrics.runEnded(run.spec.type, run.status!.phase)
          // Progress of a Run is none of our business: it would be a pass for each resource an engine finishes.
          if (isNews(old, run)) kick()
          if (old.spec.workerName !== run.spec.workerName) kickLost()
        },
        deleted: kick,
      }),
      this.workers.onChange({
        added: worker => {
          const state = this.#starts.get(worker.spec.pool)
          if (state) this.#starts.set(worker.spec.pool, withRegistered(state, worker.metadata.name))
          kick()
          kickLost()
        },
        updated: kick,
        deleted: worker => {
          this.#exited.delete(worker.metadata.name)
          kick()
        },
      }),
      this.#pools.onChange({
        added: kick,
        updated: (old, pool) => {
          if (old.metadata.generation !== pool.metadata.generation) kick()
        },
        deleted: kick,
      }),
      this.#stacks.onChange({ added: kick, deleted: kick }),
      // A renewal only moves the deadline, which the pass at the deadline finds out by itself.
      this.#leases.onChange({
        added: kickLost,
        updated: (_, lease) => {
          if (this.#observer.isObserved(lease.metadata.name))
            this.#observer.observe(lease.metadata.name, tokenOf(lease), this.#parts.monotonicMs())
        },
      }),
    ]
  }

  async #guarded(what: string, pass: () => Promise<number | undefined>): Promise<number | undefined> {
    try {
      return await pass()
    } catch (thrown) {
      this.#log.error({ err: coerceError(thrown), pass: what }, 'pass failed, trying again in a second')
      return 1_000
    }
  }

  // ---- who gets what

  async #dispatchPass(): Promise<number | undefined> {
    const nowMs = this.#parts.nowMs()
    this.#expireStarts(nowMs)
    this.#tidyRuns(nowMs)
    const decision = decideDispatch({
      queued: this.#assignable(),
      workers: this.#usableWorkers(),
      load: this.#load(),
      pools: this.#pools.list(),
      starts: this.#starts,
      nowMs,
    })
    for (const { run, worker } of decision.assignments) {
      // The rest follows when these are through: each that ends kicks.
      if (this.#inFlight.size >= maxInFlight) break
      this.#begin(run, worker, () => this.#assign(run, worker))
    }
    for (const { pool, count } of decision.start) this.#startWorkers(pool, count, nowMs)
    for (const worker of decision.drain) this.#drain(worker)
    this.#tell(decision.waiting)
    const poolsInMs = this.#writePools(decision, nowMs)
    const timeouts = [...this.#starts.values()].map(nextTimeoutMs).filter(atMs => atMs !== undefined)
    const next = Math.min(decision.requeueAfterMs ?? Infinity, poolsInMs, ...timeouts.map(atMs => atMs - nowMs), this.#tidyAgainMs(nowMs))
    return next === Infinity ? undefined : Math.max(1, next)
  }

  #assignable(): Run[] {
    return this.runs.byIndex('unassigned', 'yes').filter(run => {
      if (run.spec.cancel || run.metadata.deletionTimestamp || this.#inFlight.has(objectKey(run))) return false
      return this.#hasStack(run)
    })
  }

  #hasStack(run: Run): boolean {
    const stack = this.#stacks.get(`${run.metadata.namespace}/${run.spec.stackRef.name}`)
    return stack?.metadata.uid === run.spec.stackRef.uid
  }

  /** A worker that exited, or that is late with its renewals, gets nothing more: it may be dead already. */
  #usableWorkers(): Worker[] {
    const lateMs = this.#parts.leaseDurationMs / 2
    const nowMs = this.#parts.monotonicMs()
    return this.workers.list().map(worker => {
      const { name } = worker.metadata
      const isUsable = !this.#exited.has(name) && !this.#burying.has(name) && this.#observer.ageMs(name, nowMs) < lateMs
      return isUsable ? worker : { ...worker, spec: { ...worker.spec, drain: true } }
    })
  }

  #load(): Map<string, WorkerLoad> {
    const load = new Map<string, WorkerLoad>()
    const given = new Map<string, number>()
    for (const [key, worker] of this.#inFlight) {
      if (worker !== undefined && !this.runs.get(key)?.spec.workerName) given.set(worker, (given.get(worker) ?? 0) + 1)
    }
    for (const { metadata } of this.workers.list()) {
      const { name } = metadata
      const extra = given.get(name) ?? 0
      load.set(name, {
        active: this.runs.byIndex('activeOf', name).length + extra,
        total: this.runs.byIndex('everOf', name).length + extra,
      })
    }
    return load
  }

  async #assign(run: Run, worker: string): Promise<void> {
    const { name, namespace, resourceVersion, finalizers = [] } = run.metadata
    const handle = this.#parts.manager.client.resource(runResource)
    // The version makes this the only assignment, and one of a Run that nobody has canceled meanwhile.
    const patch = { metadata: { finalizers: [...new Set([...finalizers, assignedFinalizer])] }, spec: { workerName: worker } }
    const assigned = await handle.patch(name, patch, { type: 'merge', namespace, resourceVersion })
    this.runs.applyLocal(assigned)
    this.#metrics.runAssigned(Math.max(0, this.#parts.nowMs() - Date.parse(run.metadata.creationTimestamp)) / 1_000)
    await this.#markAssigned(assigned)
  }

  async #markAssigned(run: Run): Promise<void> {
    const { name, namespace, resourceVersion } = run.metadata
    const status = { phase: 'Assigned', assignedAt: rfc3339(this.#parts.nowMs()), reason: null, message: null }
    // Refused with Conflict if the worker was faster: then the Run is further already, and a phase never goes back.
    this.runs.applyLocal(
      await this.#parts.manager.client.resource(runResource).patchStatus(name, { status }, { namespace, resourceVersion }),
    )
  }

  /** Runs one write for a Run at a time. What is refused because the Run moved on comes back with its newer version. */
  #begin(run: Run, worker: string | undefined, write: () => Promise<void>): void {
    const key = objectKey(run)
    if (this.#inFlight.has(key)) return
    this.#inFlight.set(key, worker)
    const end = () => {
      this.#inFlight.delete(key)
      this.#kick()
    }
    const settled = write().then(end, (thrown: unknown) => {
      if (isReason(thrown, 'Conflict', 'NotFound')) {
        // The cache is behind: at once the same would be refused again.
        setTimeout(end, 20)
        return
      }
      this.#log.warn({ err: coerceError(thrown), run: key }, 'write for a run failed, trying again in a second')
      setTimeout(end, 1_000).unref()
    })
    this.#writes.add(settled)
    void settled.then(() => this.#writes.delete(settled))
  }

  // ---- Runs that need something other than a Worker

  #tidyRuns(nowMs: number): void {
    for (const run of this.runs.byIndex('unassigned', 'yes')) {
      if (run.spec.cancel) this.#begin(run, undefined, () => this.#end(run, 'Canceled', 'Canceled', 'canceled before it had a worker'))
      else if (!this.#hasStack(run)) this.#begin(run, undefined, () => this.#cancelOrphan(run))
    }
    for (const run of this.runs.byIndex('active', 'yes')) {
      if (!run.status || run.status.phase === 'Queued') this.#begin(run, undefined, () => this.#markAssigned(run))
      else if (!run.spec.cancel && (run.metadata.deletionTimestamp || !this.#hasStack(run))) {
        this.#begin(run, undefined, () => (run.metadata.deletionTimestamp ? this.#cancel(run) : this.#cancelOrphan(run)))
      }
    }
    for (const run of this.runs.byIndex('leaving', 'yes')) if (isEnded(run)) this.#begin(run, undefined, () => this.#release(run))
    for (const run of notTaken(this.runs.byIndex('active', 'yes'), nowMs)) {
      if (run.status?.reason !== 'NotTaken') this.#begin(run, undefined, () => this.#reportNotTaken(run))
    }
  }

  #tidyAgainMs(nowMs: number): number {
    let next = Infinity
    for (const { status } of this.runs.byIndex('active', 'yes')) {
      if (status?.phase !== 'Assigned' || status.reason === 'NotTaken') continue
      next = Math.min(next, Math.max(1, Date.parse(status.assignedAt ?? '') + takeWithinMs - nowMs))
    }
    return next
  }

  async #end(run: Run, phase: 'Canceled' | 'Lost', reason: string, message: string): Promise<void> {
    const { name, namespace, resourceVersion } = run.metadata
    const status = { phase, reason, message, finishedAt: rfc3339(this.#parts.nowMs()) }
    this.runs.applyLocal(
      await this.#parts.manager.client.resource(runResource).patchStatus(name, { status }, { namespace, resourceVersion }),
    )
  }

  /** The cache may not have seen the Stack yet, so the server is asked before its Run is given up. */
  async #cancelOrphan(run: Run): Promise<void> {
    const { namespace } = run.metadata
    const stack = await this.#parts.manager.client.resource(stackResource).getOrUndefined(run.spec.stackRef.name, { namespace })
    if (stack?.metadata.uid === run.spec.stackRef.uid) {
      this.#stacks.applyLocal(stack)
      return
    }
    if (run.spec.workerName) await this.#cancel(run)
    else await this.#end(run, 'Canceled', 'StackGone', `Stack ${run.spec.stackRef.name} does not exist any more`)
  }

  async #cancel(run: Run): Promise<void> {
    const { name, namespace } = run.metadata
    const options = { type: 'merge', namespace } as const
    this.runs.applyLocal(await this.#parts.manager.client.resource(runResource).patch(name, { spec: { cancel: true } }, options))
  }

  async #release(run: Run): Promise<void> {
    const { name, namespace, resourceVersion, finalizers = [] } = run.metadata
    const patch = { metadata: { finalizers: finalizers.filter(one => one !== assignedFinalizer) } }
    await this.#parts.manager.client.resource(runResource).patch(name, patch, { type: 'merge', namespace, resourceVersion })
  }

  async #reportNotTaken(run: Run): Promise<void> {
    const { name, namespace, resourceVersion } = run.metadata
    const message = `worker ${run.spec.workerName} renews its Lease but did not take this Run within ${takeWithinMs / 1_000} s; look at its log`
    this.#events.warning(run, 'NotTaken', message)
    const status = { reason: 'NotTaken', message }
    this.runs.applyLocal(
      await this.#parts.manager.client.resource(runResource).patchStatus(name, { status }, { namespace, resourceVersion }),
    )
  }

  /** Tells the first in the queue what they wait for, where that is more than their turn. */
  #tell(waiting: readonly Waiting[]): void {
    let told = 0
    for (const { run, reason, message } of waiting) {
      if (told >= toldRuns || this.#inFlight.size >= maxInFlight) return
      const isMoreThanTurn = reason !== 'NoWorker' || message.includes('has joined')
      if (!isMoreThanTurn || ++told > toldRuns || (run.status?.reason === reason && run.status.message === message)) continue
      const { name, namespace, resourceVersion } = run.metadata
      this.#begin(run, undefined, async () => {
        const status = { phase: 'Queued', reason, message }
        const handle = this.#parts.manager.client.resource(runResource)
        this.runs.applyLocal(await handle.patchStatus(name, { status }, { namespace, resourceVersion }))
      })
    }
  }

  // ---- workers of pools

  #startWorkers(poolName: string, count: number, nowMs: number): void {
    const pool = this.#pools.get(poolName)
    if (!pool) return
    for (let i = 0; i < count; i++) {
      const worker = `${poolName.slice(0, 50)}-${Math.floor(this.#parts.random() * 0x1_0000_0000)
        .toString(16)
        .padStart(8, '0')}`
      this.#starts.set(poolName, withStarted(this.#starts.get(poolName) ?? noStarts, worker, nowMs))
      this.#parts.poolDriver.start(pool, worker).catch((thrown: unknown) => {
        this.#startFailed(poolName, worker, `worker ${worker} could not be started: ${coerceError(thrown).message}`)
      })
    }
  }

  #onExit(worker: string, exitCode: number | undefined): void {
    if (this.workers.get(worker)) this.#exited.add(worker)
    const how = exitCode === undefined ? 'was killed' : `exited with code ${exitCode}`
    for (const [pool, state] of this.#starts) {
      if (state.starting.some(({ name }) => name === worker))
        this.#startFailed(pool, worker, `worker ${worker} ${how} before it registered`)
    }
    this.#kick()
  }

  #startFailed(pool: string, worker: string, why: string): void {
    const before = this.#starts.get(pool) ?? noStarts
    const state = withFailed(before, worker, why, this.#parts.nowMs())
    if (state === before) return
    this.#starts.set(pool, state)
    this.#log.warn({ pool, failures: state.failures }, why)
    const object = this.#pools.get(pool)
    if (object) this.#events.warning(object, 'WorkerStartFailed', why)
    this.#kick()
  }

  #expireStarts(nowMs: number): void {
    for (const [pool, state] of this.#starts) {
      const next = withTimeouts(state, nowMs)
      if (next === state) continue
      this.#starts.set(pool, next)
      this.#log.warn({ pool, failures: next.failures }, next.lastError)
      const object = this.#pools.get(pool)
      if (object) this.#events.warning(object, 'WorkerStartFailed', next.lastError)
    }
  }

  /** Workers that were started before this process led, and that have not registered yet, count as starting. */
  #adoptStarts(): void {
    const nowMs = this.#parts.nowMs()
    for (const [pool, state] of this.#starts) {
      this.#starts.set(pool, { ...state, starting: state.starting.filter(({ name }) => !this.workers.get(name)) })
    }
    for (const worker of this.#parts.poolDriver.running()) {
      const pool = worker.slice(0, worker.lastIndexOf('-'))
      const state = this.#starts.get(pool) ?? noStarts
      if (this.workers.get(worker) || !this.#pools.get(pool) || state.starting.some(({ name }) => name === worker)) continue
      this.#starts.set(pool, withStarted(state, worker, nowMs))
    }
  }

  #drain(name: string): void {
    const worker = this.workers.get(name)
    if (!worker || worker.spec.drain) return
    const handle = this.#parts.manager.client.resource(workerResource)
    const { resourceVersion } = worker.metadata
    handle.patch(name, { spec: { drain: true } }, { type: 'merge', resourceVersion }).then(
      drained => this.workers.applyLocal(drained),
      (thrown: unknown) => this.#log.debug({ err: coerceError(thrown), worker: name }, 'spare worker could not be drained'),
    )
  }

  /** Returns after how many milliseconds a status that was held back is to be written. */
  #writePools(decision: DispatchDecision, nowMs: number): number {
    let againInMs = Infinity
    for (const pool of this.#pools.list()) {
      const { name, generation } = pool.metadata
      const numbers = decision.pools.get(name)
      if (!numbers) continue
      const state = this.#starts.get(name)
      const isFailing = state !== undefined && state.failures > 0
      const ready = isFailing
        ? ({ status: 'False', reason: 'WorkerStartFailed', message: `${state.lastError}; ${state.failures} failed in a row` } as const)
        : ({ status: 'True', reason: 'Ready', message: 'Workers can be started' } as const)
      const conditions = setCondition(pool.status?.conditions, { type: 'Ready', ...ready, observedGeneration: generation ?? 1 }, nowMs)
      const next: WorkerPoolStatus = { ...numbers, observedGeneration: generation ?? 1, conditions }
      const lastMs = this.#poolWrites.get(name) ?? -Infinity
      if (nowMs - lastMs < poolStatusEveryMs) {
        againInMs = Math.min(againInMs, poolStatusEveryMs - (nowMs - lastMs))
        continue
      }
      const handle = this.#parts.manager.client.resource(workerPoolResource)
      const isSame = JSON.stringify(pool.status) === JSON.stringify({ ...pool.status, ...next })
      if (isSame) continue
      this.#poolWrites.set(name, nowMs)
      patchStatusIfChanged(handle, pool, next).then(
        written => this.#pools.applyLocal(written),
        (thrown: unknown) => this.#log.debug({ err: coerceError(thrown), pool: name }, 'status of the pool was not written'),
      )
    }
    return againInMs
  }

  // ---- who is dead

  async #lostPass(): Promise<number | undefined> {
    // Other Leases live here too, such as those of controllers: only a worker's may be buried.
    const ofWorkers = this.#leases.list().filter(({ metadata }) => metadata.labels?.[labels.pool] || this.workers.get(metadata.name))
    const leases = new Map(ofWorkers.map(lease => [lease.metadata.name, tokenOf(lease)]))
    const nowMs = this.#parts.monotonicMs()
    const runs = this.runs.byIndex('active', 'yes')
    const { deaths, requeueAfterMs } = decideLost({ workers: this.workers.list(), runs, leases, observer: this.#observer, nowMs })
    await Promise.all(deaths.map(death => this.#bury(death)))
    if (requeueAfterMs === undefined) return undefined
    // An expired one that could not be buried, as the server does not answer, is tried again after a moment.
    return deaths.length > 0 ? 500 : requeueAfterMs + 1
  }

  /**
   * The Lease goes first, at exactly the version that was its last: from then on a renewal of a worker that is not as
   * dead as it looks fails, and makes it stop by itself. A crash after any step is continued by the next pass.
   */
  async #bury(death: Death): Promise<void> {
    const { worker } = death
    this.#burying.add(worker)
    try {
      if (!(await this.#confirm(death))) return
      const { client } = this.#parts.manager
      for (const run of this.runs.byIndex('activeOf', worker)) await this.#markLost(run, worker)
      if (death.hasWorker) await ignoringNotFound(client.resource(workerResource).delete(worker))
      this.#log.warn({ worker, runs: death.runs.map(objectKey) }, 'worker is lost')
    } catch (thrown) {
      this.#log.warn({ err: coerceError(thrown), worker }, 'lost worker could not be cleared away, trying again')
    } finally {
      this.#burying.delete(worker)
      this.#kick()
    }
  }

  /** Asks the server itself, as a watch that stands still looks like a dead worker, and takes the Lease away. */
  async #confirm({ worker, lease }: Death): Promise<boolean> {
    const handle = this.#parts.manager.client.resource(leaseResource)
    const live = await handle.getOrUndefined(worker, { namespace: systemNamespace })
    if (!live) return true
    if (tokenOf(live) !== lease) {
      this.#observer.observe(worker, tokenOf(live), this.#parts.monotonicMs())
      return false
    }
    const { uid, resourceVersion } = live.metadata
    try {
      await handle.delete(worker, { namespace: systemNamespace, preconditions: { uid, resourceVersion } })
    } catch (error) {
      if (isReason(error, 'Conflict')) return false
      if (!isReason(error, 'NotFound')) throw error
    }
    return true
  }

  async #markLost(run: Run, worker: string): Promise<void> {
    const handle = this.#parts.manager.client.resource(runResource)
    const seconds = this.#parts.leaseDurationMs / 1_000
    const message = `worker ${worker} did not renew its Lease for ${seconds} s and is taken for dead`
    for (let present: Run | undefined = run; present && !isEnded(present) && present.spec.workerName === worker; ) {
      try {
        await this.#end(present, 'Lost', 'WorkerLost', message)
        return
      } catch (error) {
        if (!isReason(error, 'Conflict', 'NotFound')) throw error
        const { name, namespace } = run.metadata
        present = await handle.getOrUndefined(name, { namespace })
      }
    }
  }
}

/** What changes with every renewal, and with nothing that a reader does. */
function tokenOf(lease: KubeObject<LeaseBody>): string {
  return `${lease.metadata.uid}/${lease.metadata.resourceVersion}`
}

function isNews(old: Run, run: Run): boolean {
  return (
    old.status?.phase !== run.status?.phase ||
    old.spec.workerName !== run.spec.workerName ||
    old.spec.cancel !== run.spec.cancel ||
    old.metadata.deletionTimestamp !== run.metadata.deletionTimestamp
  )
}

async function ignoringNotFound(write: Promise<unknown>): Promise<void> {
  try {
    await write
  } catch (error) {
    if (!isReason(error, 'NotFound')) throw error
  }
}
