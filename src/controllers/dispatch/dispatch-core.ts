import {
  assignedFinalizer,
  defaults,
  hasRegistered,
  isStartRequested,
  mergePolicies,
  type Run,
  type RunPolicy,
  type RunSpec,
  type Tenant,
  type Worker,
  type WorkerPod,
} from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { AcceptanceCheck } from './acceptance-check.ts'
import { type DispatchAction, type DispatchDecision, writtenObject } from './dispatch-action.ts'
import type { DispatchEvent, Now } from './dispatch-event.ts'
import { FailureDetector } from './failure-detection/index.ts'
import { ForeignRuns } from './foreign-runs.ts'
import { type ObjectVersion, objectIdOf, versionOf } from './object-version.ts'
import { PendingWrites } from './pending-writes.ts'
import { Scheduler, trustDomainToRecord } from './placement/index.ts'
import {
  decideOrphans,
  EndedWorkers,
  lostStatus,
  type OrphanSince,
  type PoolsDecision,
  StartTracker,
  type WorkerReport,
} from './pool/index.ts'
import { type ClaimsNames, PoolAutoscaler } from './pool-autoscaler.ts'
import { demandOf } from './pool-demand.ts'
import type { RunQueueOptions } from './queue/index.ts'
import { ReportedDemand } from './reported-demand.ts'
import { decideRunCleanup } from './run-cleanup.ts'
import { cacheKeysOf, makeRunRecord, type RunRecord } from './run-record.ts'
import { RunTracker } from './run-tracker.ts'
import { Settings } from './settings.ts'
import { SpareWorkers } from './spare-workers.ts'
import {
  DemandReports,
  type PartitionError,
  PendingReasons,
  PoolStatuses,
  QueuePositions,
  type QueueReport,
  type QueueReportOptions,
  queueReport,
  TenantReports,
  TenantStatuses,
} from './status/index.ts'
import { freeSlots, noLoad } from './worker-load.ts'
import { WorkerTemplateCache } from './worker-template-cache.ts'

export type DispatchCoreOptions = RunQueueOptions & {
  /** Default 10,000. All workers must use the same value, because they stop themselves by it (invariant 2). */
  readonly leaseDurationMs?: number | undefined
  /** Default: those of Pods. */
  readonly claimsNames?: ClaimsNames | undefined
  /** Where several dispatchers share workers. Default: this is the only one. */
  readonly shared?: SharedWorkers | undefined
}

export type SharedWorkers = {
  /** False for a worker that another dispatcher prefers: it is used when no other fits. */
  readonly isPreferred: (worker: Worker) => boolean
  /** False: another dispatcher starts and drains the workers of all pools, and writes their status; the demand of this one is reported to it. */
  readonly sizesPools: boolean
  /** For the one that sizes the pools: whether the dispatcher of another partition uses this worker. Default: all use all. */
  readonly sees?: ((partition: string, worker: string) => boolean) | undefined
  readonly partitionError?: PartitionError | undefined
  /** Whether the namespaces of a Tenant are in this partition. Default: those of all Tenants are. */
  readonly hasTenant?: ((tenant: Tenant) => boolean) | undefined
}

/** A Run that does not exist yet. */
export type NewRun = { readonly namespace: string; readonly name: string; readonly spec: RunSpec }

/** What a Run is created with, so that it is assigned to `worker`. */
export type Placement = {
  readonly object: ObjectVersion
  readonly worker: string
  readonly workerPod: WorkerPod | undefined
  readonly atMs: number
  readonly finalizers: readonly string[]
  readonly policy: RunPolicy
  readonly tenant: RunSpec['tenant']
}

/** How often long Runs are charged and unused accounts removed. */
const tickIntervalMs = 30_000

/**
 * Decides everything that dispatch does: which Worker gets which Run, which workers are started, drained and declared lost, and which statuses are
 * written. {@link observe} takes what has happened, {@link decide} returns what to do. It has no I/O, clock or randomness of its own and changes
 * nothing that it is given; its indexes make the cost of a change independent of the number of queued Runs.
 *
 * A decision counts immediately, before it is executed: an assigned Run is active, a started worker is starting. The caller executes each action
 * once and reports its outcome as an event. A new leader creates a new core and reports to it all objects that exist: nothing else is needed to continue.
 *
 * This is the list of all events and of all steps of a decision, in their order; each step is decided elsewhere.
 * It is above 400 lines for that reason: a part of the list in another file would have to share all of these fields.
 */
export class DispatchCore {
  readonly #scheduler: Scheduler
  readonly #runs: RunTracker
  readonly #failures: FailureDetector
  readonly #starts: StartTracker
  readonly #writes = new PendingWrites()
  /** True while a write of the object is pending: nothing is decided for it. */
  readonly #isPending = (object: ObjectVersion): boolean => this.#writes.has(object)
  readonly #workerTemplates = new WorkerTemplateCache()
  /** The registered ones. */
  readonly #workers = new Map<string, Worker>()
  /** What the registered Workers show whose Pod has ended. */
  readonly #exits = new Map<string, WorkerReport>()
  readonly #ended = new EndedWorkers()
  readonly #settings = new Settings()
  /** Without `shared` all Runs are this dispatcher's. */
  readonly #foreignRuns: ForeignRuns
  readonly #spares = new SpareWorkers()
  readonly #isSpare: (worker: Worker) => boolean
  readonly #sizesPools: boolean
  readonly #sees: SharedWorkers['sees']
  readonly #partitionError: SharedWorkers['partitionError']
  readonly #hasTenant: SharedWorkers['hasTenant']
  readonly #autoscaler: PoolAutoscaler
  /** Of the dispatchers that do not size the pools, if this one does; */
  readonly #reportedDemand = new ReportedDemand()
  /** of this one, if it does not. */
  readonly #demandReports = new DemandReports()
  /** Ids of Runs whose finalizer is being removed. */
  readonly #releasing = new Set<string>()
  readonly #acceptance = new AcceptanceCheck()
  readonly #positions = new QueuePositions()
  readonly #poolStatuses = new PoolStatuses()
  readonly #tenantStatuses = new TenantStatuses()
  readonly #tenantReports = new TenantReports()
  #tickedAtMs = Number.NEGATIVE_INFINITY
  #orphansSince: ReadonlyMap<string, OrphanSince> = new Map()
  #poolCounts: PoolsDecision['pools'] = new Map()
  /** Of the last event. */
  #now: Now

  /** @param now Runs that ended before it are charged with their age. */
  constructor(options: DispatchCoreOptions, now: Now) {
    const { leaseDurationMs = defaults.leaseDurationMs, claimsNames = { Pod: true }, shared, ...queueOptions } = options
    this.#now = now
    this.#sizesPools = shared?.sizesPools ?? true
    this.#sees = shared?.sees
    this.#partitionError = shared?.partitionError
    this.#isSpare = worker => shared?.isPreferred(worker) === false
    this.#hasTenant = shared?.hasTenant
    this.#foreignRuns = new ForeignRuns(namespace => !shared || this.#settings.hasNamespace(namespace))
    this.#failures = new FailureDetector(leaseDurationMs)
    this.#scheduler = new Scheduler({ nowMs: now.wallMs, ...queueOptions, isPreferred: shared?.isPreferred })
    this.#starts = new StartTracker(this.#settings.pools, worker => this.#workers.has(worker))
    this.#autoscaler = new PoolAutoscaler(this.#starts, claimsNames)
    this.#runs = new RunTracker({
      queue: this.#scheduler.queue,
      policiesFor: (namespace, pool) => this.#settings.policiesFor(namespace, pool),
      ownerOf: (namespace, pool) => ({ pool: this.#settings.pools.get(pool), tenant: this.#settings.tenantRefOf(namespace) }),
      workerCreatedMs: name => {
        const worker = this.#workers.get(name)
        return worker && Date.parse(worker.metadata.creationTimestamp)
      },
      onLoad: (name, load) => {
        const worker = this.#workers.get(name)
        this.#scheduler.inventory.setLoad(name, worker ? this.#foreignRuns.add(worker, load) : load)
      },
      onWorkerRuns: (worker, hasRuns) => this.#failures.runsChanged(worker, hasRuns, this.#now.monotonicMs),
      onStarted: worker => this.#starts.startedRun(worker),
    })
  }

  // ---- events

  /** Takes an event. Returns true if a decision is due now; otherwise it can wait until the last decision's `requeueAfterMs`. */
  observe(event: DispatchEvent, now: Now): boolean {
    this.#now = now
    const { wallMs, monotonicMs } = now
    switch (event.kind) {
      case 'RunChanged':
        // Otherwise settings are applied by the next decision: that orders the whole queue again.
        if (event.isInitial) this.#applySettings()
        else this.#observeRejection(event.run, wallMs)
        return this.#runs.observe(event.run, { isInitial: event.isInitial, nowMs: wallMs })
      case 'RunDeleted':
        return this.#runs.delete(event.run, wallMs)
      case 'WorkerChanged':
        return this.#workerChanged(event.worker, now)
      case 'WorkerDeleted':
        return this.#workerDeleted(event.worker, now)
      case 'LeaseChanged':
        return this.#failures.leaseChanged(event.lease, monotonicMs)
      case 'LeaseDeleted':
        return this.#failures.leaseDeleted(event.worker, monotonicMs)
      case 'PoolChanged':
        if (this.#sizesPools && this.#reportedDemand.poolChanged(event.pool, monotonicMs)) {
          this.#settings.poolChanged(event.pool)
          return true
        }
        return this.#settings.poolChanged(event.pool)
      case 'PoolDeleted':
        this.#workerTemplates.invalidate(event.pool.metadata.name)
        this.#starts.poolDeleted(event.pool.metadata.name)
        this.#poolStatuses.forget(event.pool.metadata.name)
        this.#reportedDemand.poolDeleted(event.pool.metadata.name)
        this.#demandReports.poolDeleted(event.pool.metadata.name)
        return this.#settings.poolDeleted(event.pool)
      case 'TenantChanged':
        return this.#settings.tenantChanged(event.tenant)
      case 'TenantDeleted':
        this.#tenantStatuses.forget(event.tenant.metadata.name)
        this.#tenantReports.forget(event.tenant.metadata.name)
        return this.#settings.tenantDeleted(event.tenant)
      case 'NamespaceChanged':
        return this.#settings.namespaceChanged(event.namespace)
      case 'NamespaceDeleted':
        return this.#settings.namespaceDeleted(event.namespace)
      case 'SubjectChanged':
        return this.#runs.subjectChanged(event.subject, event.recordedEpoch, wallMs)
      case 'SubjectDeleted':
        return this.#runs.subjectDeleted(event.subject, wallMs)
      case 'SubjectMissing':
        return this.#runs.subjectMissing(event.subject, wallMs)
      case 'ProcessObserved':
        this.#autoscaler.processObserved(event.process.name)
        return this.#starts.processObserved(event.process, wallMs)
      case 'WorkerExited':
        this.#failures.processExited(event.worker, event.failure?.isGone)
        this.#workerExited(event)
        // A Run that ends its worker before the first report must not delay the starts of the pool.
        if (this.#runs.hasActive(event.worker)) this.#starts.startedRun(event.worker)
        this.#starts.exited(event.worker, event.exitCode, event.failure, wallMs)
        return true
      case 'StartFailed':
        this.#starts.startFailed(event.pool, event.worker, event.failure, wallMs)
        return true
      case 'WriteSettled':
        return this.#writeSettled(event, now)
      case 'CreationSettled':
        this.#writes.settle(event.run, 'Written', monotonicMs)
        return this.#runs.creationSettled(`${event.run.namespace}/${event.run.name}`, wallMs)
      case 'LossSettled':
        return this.#lossSettled(event, now)
    }
  }

  /** Before the Run frees its slot: another dispatcher's Run has it. */
  #observeRejection(run: Run, wallMs: number): void {
    const worker = this.#workers.get(this.#foreignRuns.runEnded(run, wallMs) ?? '')
    this.#updateInventory(worker)
  }

  #workerChanged(worker: Worker, { wallMs, monotonicMs }: Now): boolean {
    const { name } = worker.metadata
    // A worker whose start is requested has no Lease before it registers; the start timeout of its pool applies to it.
    if (isStartRequested(worker)) this.#failures.workerDeleted(name, monotonicMs)
    else this.#failures.workerChanged(versionOf('Worker', worker), monotonicMs)
    if (!hasRegistered(worker)) {
      if (this.#workers.delete(name)) this.#forgetWorker(name)
      return true
    }
    const before = this.#workers.get(name)
    if (before) this.#reportedDemand.accepted(worker.spec.pool, this.#foreignRuns.newOf(before, worker), monotonicMs)
    const wasFree = before !== undefined && this.#hasFreeSlot(before)
    this.#workers.set(name, worker)
    this.#foreignRuns.workerChanged(worker)
    if (!wasFree && this.#isSpare(worker) && this.#hasFreeSlot(worker)) this.#spares.freed(name, wallMs)
    this.#updateInventory(worker)
    this.#workerTemplates.observe(worker)
    if (!before) this.#starts.registered(worker.spec.pool, name, wallMs)
    // Also with a Run of another partition, which this dispatcher does not know.
    if (isBusy(worker) && !(before && isBusy(before))) this.#starts.startedRun(name)
    return true
  }

  #workerDeleted(worker: Worker, { wallMs, monotonicMs }: Now): boolean {
    const { name } = worker.metadata
    // A registered worker that renews its Lease deletes its Worker itself when it ends. What others delete proves nothing.
    if (this.#workers.delete(name) && !this.#failures.isSuspect(name)) this.#starts.deregistered(name)
    else this.#starts.removed(name)
    this.#failures.workerDeleted(name, monotonicMs)
    this.#workerTemplates.workerDeleted(worker, wallMs)
    this.#forgetWorker(name)
    return true
  }

  #forgetWorker(name: string): void {
    this.#exits.delete(name)
    this.#ended.delete(name)
    this.#foreignRuns.workerDeleted(name)
    this.#spares.delete(name)
    this.#scheduler.inventory.delete(name)
    this.#runs.workerDeleted(name)
  }

  #workerExited({ worker, exitCode, failure }: DispatchEvent & { kind: 'WorkerExited' }): void {
    if (!failure) {
      const isPod = this.#workers.get(worker)?.spec.pod !== undefined
      if (isPod && exitCode === 0) this.#ended.add(worker, this.#now.monotonicMs)
      return
    }
    this.#runs.workerEnded(worker, failure)
    if (this.#workers.get(worker)?.spec.pod) this.#exits.set(worker, lostStatus(failure, exitCode))
  }

  #writeSettled({ object, outcome }: DispatchEvent & { kind: 'WriteSettled' }, { wallMs, monotonicMs }: Now): boolean {
    if (object.kind === 'WorkerPool') {
      this.#autoscaler.writeSettled(object.name, outcome, wallMs)
      this.#demandReports.writeSettled(object.name, outcome)
    }
    if (object.kind === 'Tenant') this.#tenantReports.writeSettled(object.name, outcome)
    if (this.#releasing.delete(objectIdOf(object)) && outcome === 'Written') this.#runs.released(object)
    const isFree = this.#writes.settle(object, outcome, monotonicMs)
    if (isFree && object.kind === 'Run') this.#runs.settle(`${object.namespace}/${object.name}`, wallMs)
    // The delay of a failed write counts from the next decision on.
    return true
  }

  #lossSettled({ worker, outcome, lease }: DispatchEvent & { kind: 'LossSettled' }, { wallMs, monotonicMs }: Now): boolean {
    const isDue = this.#failures.lossSettled(worker, outcome, monotonicMs)
    // Its next renewal is found by asking again: without the version that is known now, no loss could ever be confirmed.
    if (lease) this.#failures.leaseChanged(lease, monotonicMs)
    if (isDue && outcome === 'Lost') this.#runs.markLost(worker, wallMs)
    return isDue
  }

  // ---- decisions

  /**
   * Places a Run that is about to be created, so that it is created with its worker: one write, where {@link decide} needs a second one. Undefined if the
   * Run has to be queued; then it is created without a worker. Like an assignment, the placement counts immediately; report `CreationSettled`
   * when the creation has ended.
   * @param random 0 ≤ x < 1; for sampling large pools.
   */
  placeNewRun({ namespace, name, spec }: NewRun, now: Now, random: () => number): Placement | undefined {
    this.#now = now
    const { wallMs } = now
    const metadata = { namespace, name, uid: '', resourceVersion: '0', generation: 1, creationTimestamp: rfc3339(wallMs) }
    const record = makeRunRecord({ metadata, spec } as Run)
    if (this.#writes.availableRuns === 0 || this.#runs.get(record.key) || !this.#runs.hasSubject(record)) return undefined
    this.#applySettings()
    this.#runs.applyPolicies(record)
    const tenant = this.#settings.tenantRefOf(namespace)
    const worker = this.#scheduler.assignNew(record.request, cacheKeysOf(record, tenant), wallMs, random)
    if (worker === undefined) return undefined
    this.#runs.expect(record, worker, wallMs)
    this.#writes.begin(record.object)
    const policy = this.#policyOf(namespace, spec.pool)
    return { object: record.object, worker, workerPod: this.#podOf(worker), atMs: wallMs, finalizers: [assignedFinalizer], policy, tenant }
  }

  /** @param random 0 ≤ x < 1; for the names of workers, and for sampling large pools. */
  decide(now: Now, random: () => number): DispatchDecision {
    this.#now = now
    const { wallMs, monotonicMs } = now
    const actions: DispatchAction[] = []
    const add = (action: DispatchAction) => {
      const object = writtenObject(action)
      if (object) this.#writes.begin(object)
      actions.push(action)
    }
    this.#applySettings()
    this.#settleDelayed(now)
    if (wallMs - this.#tickedAtMs >= tickIntervalMs || wallMs < this.#tickedAtMs) {
      this.#tickedAtMs = wallMs
      this.#scheduler.queue.tick(wallMs)
    }
    for (const worker of this.#starts.expire(wallMs)) add({ kind: 'StopProcess', worker, force: false, reason: 'StartTimeout' })
    for (const shared of [this.#foreignRuns, this.#spares])
      for (const name of shared.expire(wallMs)) this.#updateInventory(this.#workers.get(name))
    const sharedNextMs = Math.min(this.#foreignRuns.nextMs(), this.#spares.nextMs())
    const requeues = [this.#detectFailures(add, monotonicMs), this.#cleanUpRuns(add, wallMs), sharedNextMs - wallMs]
    this.#assign(add, wallMs, random)
    requeues.push(
      this.#deleteEndedWorkers(add, monotonicMs),
      this.#sizePools(add, now, random),
      this.#stopOrphans(add, wallMs),
      this.#reportPositions(add, wallMs),
      this.#reportTenants(add, wallMs),
      this.#starts.nextTimeoutMs() - wallMs,
      this.#writes.nextDueMs(monotonicMs),
    )
    for (const { pool, failures, failure } of this.#starts.takeFailures())
      add({ kind: 'ReportStartFailure', pool: this.#settings.pools.get(pool), name: pool, failures, failure })
    const requeueAfterMs = Math.min(...requeues)
    return { actions, requeueAfterMs: requeueAfterMs === Number.POSITIVE_INFINITY ? undefined : Math.max(1, requeueAfterMs) }
  }

  /** Queues the Runs again whose assignment has failed, once their delay is over. */
  #settleDelayed({ wallMs, monotonicMs }: Now): void {
    for (const id of this.#writes.takeDue(monotonicMs)) if (id.startsWith('Run/')) this.#runs.settle(id.slice('Run/'.length), wallMs)
  }

  #detectFailures(add: (action: DispatchAction) => void, monotonicMs: number): number {
    const { expired, changed, requeueAfterMs } = this.#failures.decide(monotonicMs)
    for (const { worker, lease } of expired) add({ kind: 'ConfirmLoss', worker, lease })
    for (const name of changed) {
      this.#updateInventory(this.#workers.get(name))
    }
    for (const { name, worker } of [...this.#failures.lost()]) {
      // Its Runs end first. After a crash between the two, the next leader finds the Worker without a Lease, and declares it lost again.
      if ([...this.#runs.activeOn(name)].some(({ lostWith }) => lostWith !== undefined)) continue
      if (!worker) this.#failures.removed(name, monotonicMs)
      else if (!this.#writes.has(worker)) add(removalOf(worker, this.#exits.get(name)))
    }
    return requeueAfterMs
  }

  #deleteEndedWorkers(add: (action: DispatchAction) => void, nowMs: number): number {
    const { together, alone, requeueAfterMs } = this.#ended.decide({
      workerOf: name => this.#workers.get(name),
      isBusy: worker => this.#runs.hasActive(worker.metadata.name) || this.#writes.has(versionOf('Worker', worker)),
      nowMs,
    })
    if (together.length > 0) add({ kind: 'DeleteWorkers', names: together })
    for (const worker of alone) add({ kind: 'DeleteWorker', object: versionOf('Worker', worker) })
    return requeueAfterMs
  }

  #cleanUpRuns(add: (action: DispatchAction) => void, nowMs: number): number {
    const input = {
      runs: this.#runs,
      isPending: this.#isPending,
      leaseDurationOf: (worker: string) => this.#failures.durationOf(worker),
      describeWorker: (name: string) => describeWorker(name, this.#workers.get(name)),
      nowMs,
    }
    for (const action of decideRunCleanup(input)) {
      add(action)
      if (action.kind === 'ReleaseRun') this.#releasing.add(objectIdOf(action.object))
    }
    const { actions, requeueAfterMs } = this.#acceptance.decide({ ...input, isAlive: worker => this.#failures.hasLease(worker) })
    // A Run that has just been canceled is decided again when that write has ended.
    for (const action of actions) if (!('object' in action) || !this.#writes.has(action.object)) add(action)
    return requeueAfterMs
  }

  #assign(add: (action: DispatchAction) => void, nowMs: number, random: () => number): void {
    const assignments = this.#scheduler.schedule({
      cacheKeysOf: key => {
        const run = this.#runs.get(key)
        return run && cacheKeysOf(run, this.#settings.tenantRefOf(run.request.namespace))
      },
      limit: this.#writes.availableRuns,
      nowMs,
      random,
    })
    for (const { key, namespace, worker, pool } of assignments) {
      const run = this.#runs.get(key)
      if (!run) throw new Error(`bug: unknown Run ${key} is queued`)
      this.#runs.assume(run, worker)
      const { object, finalizers, createdMs } = run
      // A report of its position is being written: when that has ended, the Run is queued again and assigned at its new version.
      if (this.#writes.has(object)) continue
      const all = [...new Set([...finalizers, assignedFinalizer])]
      const [queuedMs, policy] = [Math.max(0, nowMs - createdMs), this.#policyOf(namespace, pool)]
      const tenant = this.#settings.tenantRefOf(namespace)
      const workerPod = this.#podOf(worker)
      const record = this.#recordOf(worker, run)
      add({ kind: 'AssignRun', object, worker, workerPod, record, pool, atMs: nowMs, queuedMs, finalizers: all, policy, tenant })
    }
  }

  #recordOf(name: string, run: RunRecord) {
    const worker = this.#workers.get(name)
    const trustDomain = worker && trustDomainToRecord(run.request.requirements, worker)
    return worker && trustDomain !== undefined ? { object: versionOf('Worker', worker), trustDomain } : undefined
  }

  #podOf(worker: string): WorkerPod | undefined {
    const pod = this.#workers.get(worker)?.spec.pod
    return pod && { namespace: pod.namespace, ...(pod.uid !== undefined && { uid: pod.uid }) }
  }

  #applySettings(): void {
    if (this.#settings.apply(this.#scheduler.queue)) this.#runs.policiesChanged()
  }

  #policyOf(namespace: string, pool: string): RunPolicy {
    return mergePolicies((this.#settings.policiesFor(namespace, pool) ?? []).map(({ policy }) => policy))
  }

  #sizePools(add: (action: DispatchAction) => void, now: Now, random: () => number): number {
    const { queue, inventory } = this.#scheduler
    const { pools } = this.#settings
    const isPending = this.#isPending
    const { wallMs: nowMs, monotonicMs } = now
    const workerTemplates = this.#workerTemplates.validAt(nowMs)
    const demand = demandOf({ queue, inventory, pools: pools.values(), workerTemplates })
    if (!this.#sizesPools) {
      const reports = this.#demandReports.decide({ pools, demand, isPending, now })
      for (const action of reports.actions) add(action)
      return reports.requeueAfterMs
    }
    const demandElsewhere = (pool: string) => this.#reportedDemand.of(pool, monotonicMs)
    const input = {
      queue,
      inventory,
      pools,
      demand,
      demandElsewhere,
      sees: this.#sees,
      workers: this.#workers,
      workerTemplates,
      isPending,
      nowMs,
      random,
    }
    const { actions, decision } = this.#autoscaler.decide(input)
    for (const action of actions) add(action)
    this.#poolCounts = decision.pools
    // After the claims have begun: the status of a pool is not written concurrently.
    const expiredDemand = (pool: string) => this.#reportedDemand.expired(pool, monotonicMs)
    const statuses = this.#poolStatuses.decide({ pools, decision, starts: this.#starts.states, expiredDemand, isPending, nowMs })
    for (const action of statuses.actions) add(action)
    const reportsInMs = this.#reportedDemand.nextMs(monotonicMs) - monotonicMs
    return Math.min(decision.requeueAfterMs ?? Number.POSITIVE_INFINITY, statuses.requeueAfterMs, reportsInMs)
  }

  #reportTenants(add: (action: DispatchAction) => void, nowMs: number): number {
    const { tenants, tenantIndex } = this.#settings
    const isHere = this.#hasTenant
    const input = {
      tenants,
      tenantIndex,
      queue: this.#scheduler.queue,
      isPending: this.#isPending,
      partitionError: this.#partitionError,
      isHere,
      nowMs,
    }
    const { actions, requeueAfterMs } = this.#tenantStatuses.decide(input)
    for (const action of actions) add(action)
    // Home writes the statuses that users read.
    if (this.#sizesPools || !isHere) return requeueAfterMs
    const reports = this.#tenantReports.decide({ ...input, isHere })
    for (const action of reports.actions) add(action)
    return Math.min(requeueAfterMs, reports.requeueAfterMs)
  }

  #reportPositions(add: (action: DispatchAction) => void, nowMs: number): number {
    const { actions, requeueAfterMs } = this.#positions.decide({
      queue: this.#scheduler.queue,
      reasons: () => this.#reasons(nowMs),
      runOf: key => this.#runs.get(key),
      isPending: ({ object }) => this.#writes.has(object),
      limit: this.#writes.availableRuns,
      nowMs,
    })
    for (const action of actions) add(action)
    return requeueAfterMs
  }

  #stopOrphans(add: (action: DispatchAction) => void, nowMs: number): number {
    const starting = new Set([...this.#starts.states.values()].flatMap(state => state.starting.map(({ name }) => name)))
    const { stop, since, requeueAfterMs } = decideOrphans({
      running: this.#starts.processes(),
      isRegistered: worker => this.#workers.has(worker),
      isStarting: worker => starting.has(worker),
      isAlive: worker => this.#failures.hasLease(worker) || !this.#runs.activeOn(worker)[Symbol.iterator]().next().done,
      since: this.#orphansSince,
      nowMs,
    })
    this.#orphansSince = since
    for (const { name, force } of stop) add({ kind: 'StopProcess', worker: name, force, reason: 'NoWorkerObject' })
    return requeueAfterMs ?? Number.POSITIVE_INFINITY
  }

  // ---- for people and metrics

  /** The current queue, for `/queue`. */
  report(options: QueueReportOptions, nowMs: number): QueueReport {
    const objects = { runOf: (key: string) => this.#runs.get(key), pools: this.#settings.pools.keys() }
    return queueReport(this.#scheduler.queue, objects, this.#reasons(nowMs), options, nowMs)
  }

  tenantOf(run: Run): string {
    return this.#scheduler.queue.tenantOf(run.metadata.namespace ?? '')
  }

  /** Whether the Run is known and has not ended. */
  hasRun(key: string): boolean {
    return this.#runs.get(key) !== undefined
  }

  /** Number of queued Runs by pool. */
  queuedByPool(): Map<string, number> {
    const { queue } = this.#scheduler
    const pools = new Set(this.#settings.pools.keys())
    for (const { requirements } of queue.equivalenceClasses()) pools.add(requirements.pool)
    return new Map([...pools].map(pool => [pool, queue.queuedIn(pool)]))
  }

  /** Runs that are assigned to a worker. */
  activeRuns(): Iterable<RunRecord> {
    return this.#runs.active()
  }

  /** All Workers with the number of their active Runs. */
  workers(): Iterable<{ readonly worker: Worker; readonly active: number; readonly isSchedulable: boolean }> {
    return this.#scheduler.inventory.workers()
  }

  /** The counts of each pool at the last decision. */
  poolCounts(): PoolsDecision['pools'] {
    return this.#poolCounts
  }

  #reasons(nowMs: number): PendingReasons {
    return new PendingReasons({
      queue: this.#scheduler.queue,
      workers: [...this.#workers.values()].map(worker => this.#cordoned(worker)),
      pools: [...this.#settings.pools.values()],
      starts: this.#starts.states,
      workerTemplates: this.#workerTemplates.validAt(nowMs),
      isHomeSilent: this.#sizesPools ? undefined : pool => this.#demandReports.isUnanswered(pool),
      nowMs,
    })
  }

  #updateInventory(worker: Worker | undefined): void {
    if (!worker) return
    this.#scheduler.inventory.set(this.#cordoned(worker), this.#loadOf(worker), this.#spares.isHeld(worker.metadata.name))
  }

  #loadOf = (worker: Worker) => this.#foreignRuns.add(worker, this.#runs.load(worker.metadata.name))

  #hasFreeSlot = (worker: Worker): boolean => freeSlots(worker, this.#loadOf(worker) ?? noLoad) > 0

  /** Returns a suspect as if it were draining, so that it gets no new Runs; any other Worker unchanged. */
  #cordoned(worker: Worker): Worker {
    return this.#failures.isSuspect(worker.metadata.name) ? { ...worker, spec: { ...worker.spec, drain: true } } : worker
  }
}

/** A worker that was a Pod remains until its log is removed too; any other is deleted. */
function removalOf(object: ObjectVersion, status: WorkerReport | undefined): DispatchAction {
  return status ? { kind: 'FailWorker', object, status } : { kind: 'DeleteWorker', object }
}

const isBusy = ({ status }: Worker): boolean => status?.phase === 'Busy' || (status?.runs ?? []).length > 0

const describeWorker = (name: string, worker: Worker | undefined) =>
  worker?.spec.pod ? `worker ${name} (Pod ${worker.spec.pod.namespace}/${name})` : `worker ${name}`
