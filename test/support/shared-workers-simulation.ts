import { defaults, isEnded, labels, type Run, type Worker, workerBucketOf, workerBusyReason } from '../../src/api/index.ts'
import type { DispatchAction } from '../../src/controllers/dispatch/dispatch-action.ts'
import type { WorkerLease } from '../../src/controllers/dispatch/dispatch-event.ts'
import { lossOf } from '../../src/controllers/dispatch/failure-detection/index.ts'
import { DispatchCore, type DispatchEvent } from '../../src/controllers/dispatch/index.ts'
import type { ObjectVersion } from '../../src/controllers/dispatch/object-version.ts'
import { epochMs, testPool, testRun, testWorker } from '../../src/controllers/dispatch/objects.testing.ts'
import { decideWorkerView, isPreferredIn, type WorkerView } from '../../src/controllers/dispatch/placement/index.ts'
import { RunAssignments } from '../../src/execution/worker/run-assignments.ts'
import { equalJson, rfc3339 } from '../../src/kubernetes/object/index.ts'
import { Heap, seededRandom } from '../../src/kubernetes/util/index.ts'

export type SharedWorkersOptions = {
  readonly seed: number
  readonly partitions: number
  readonly workers: number
  readonly slots: number
  /** A one-shot worker ends after its Runs, and another one takes its place. Default: Warm. */
  readonly lifecycle?: 'OneShot' | 'Warm' | undefined
  readonly jobs: number
  /** Mean duration of a Run. */
  readonly durationMs: number
  /** Share of all slots that is used on average. */
  readonly load: number
  /** How often a dispatcher crashes, and a worker is lost, in the whole simulation. */
  readonly dispatcherCrashes: number
  readonly lostWorkers: number
  /** False: every dispatcher prefers every worker that it sees, so that none is the first one. Default: true. */
  readonly hasPreference?: boolean | undefined
}

export type SharedWorkersResult = {
  readonly violations: readonly string[]
  /** Jobs that have not succeeded. */
  readonly unfinished: number
  readonly runs: number
  readonly rejected: number
  readonly lost: number
}

type Partition = {
  readonly name: string
  readonly namespace: string
  readonly view: WorkerView | undefined
  core: DispatchCore | undefined
  /** Rises with each core: what an earlier one has begun gets no reply. */
  term: number
  dueMs: number
  /** By stream: when its last event was delivered; a watch keeps the order. */
  readonly deliveredMs: Map<string, number>
}

type SimulatedWorker = {
  readonly name: string
  readonly assignments: RunAssignments
  /** Runs whose slot is used, with those that have ended and are cleaned up. */
  readonly executing: Map<string, Run>
  object: Worker
  leaseVersion: string
  isAlive: boolean
  isReporting: boolean
  deliveredMs: number
  /** Of the Run that was started last. */
  lastNamespace: string | undefined
}

type Job = { readonly id: number; readonly partition: Partition; readonly durationMs: number; isDone: boolean; attempts: number }

/** A response to a write is in the cache before it is reported, so that it comes after the change itself. */
const replyStreams: { readonly [Kind in DispatchAction['kind']]?: string } = { DeleteWorker: 'workers', ConfirmLoss: 'leases' }

const renewMs = 2_000
const reportMs = 2_000
/** From the end of a one-shot worker to the registration of the next one. */
const startMs = 1_000
const longestMs = 4 * 3_600_000

/**
 * Tenant partitions with a dispatcher each, and workers that all of them use, on virtual time: real cores, the worker's real rule of acceptance, and in
 * between delays, crashes of dispatchers and losses of workers. The same seed gives the same simulation.
 */
export class SharedWorkersSimulation {
  readonly #options: SharedWorkersOptions
  readonly #random: () => number
  readonly #events = new Heap<{ readonly atMs: number; readonly order: number; readonly run: () => void }>(
    (a, b) => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order),
  )
  readonly #partitions: Partition[]
  readonly #runs = new Map<string, { run: Run; readonly job: Job; starts: number }>()
  readonly #workers = new Map<string, SimulatedWorker>()
  readonly #leases = new Map<string, WorkerLease>()
  readonly #violations: string[] = []
  readonly #jobs: Job[] = []
  #nowMs = epochMs
  #order = 0
  #version = 1
  #workerNumber = 0
  #rejected = 0
  #lost = 0

  constructor(options: SharedWorkersOptions) {
    this.#options = options
    this.#random = seededRandom(options.seed)
    const names = Array.from({ length: options.partitions }, (_, index) => `t${index}`)
    this.#partitions = names.map(name => ({
      ...{ name, namespace: `ns-${name}`, view: decideWorkerView(name, names), core: undefined },
      ...{ term: 0, dueMs: Number.POSITIVE_INFINITY, deliveredMs: new Map() },
    }))
  }

  run(): SharedWorkersResult {
    const { workers, slots, jobs, durationMs, load, dispatcherCrashes, lostWorkers } = this.#options
    for (let index = 0; index < workers; index++) this.#addWorker()
    for (const partition of this.#partitions) this.#lead(partition)
    const spanMs = (jobs * durationMs) / (workers * slots * load)
    for (let id = 0; id < jobs; id++) {
      const partition = this.#partitions[Math.floor(this.#random() * this.#partitions.length)]!
      const job: Job = { id, partition, durationMs: -Math.log(1 - this.#random()) * durationMs, isDone: false, attempts: 0 }
      this.#jobs.push(job)
      this.#at(this.#random() * spanMs, () => this.#createRun(job))
    }
    for (let index = 0; index < dispatcherCrashes; index++) this.#at(this.#random() * spanMs, () => this.#crashDispatcher())
    for (let index = 0; index < lostWorkers; index++) this.#at(this.#random() * spanMs, () => this.#loseWorker())
    while (this.#jobs.some(({ isDone }) => !isDone) && this.#nowMs < epochMs + longestMs) {
      const next = this.#events.pop()
      if (!next) break
      this.#nowMs = next.atMs
      next.run()
    }
    return {
      violations: this.#violations,
      unfinished: this.#jobs.filter(({ isDone }) => !isDone).length,
      ...{ runs: this.#runs.size, rejected: this.#rejected, lost: this.#lost },
    }
  }

  // ---- time

  #at(inMs: number, run: () => void): void {
    this.#events.push({ atMs: this.#nowMs + Math.max(0, inMs), order: this.#order++, run })
  }

  #delayMs = (longest = 30) => 1 + this.#random() * longest

  // ---- dispatchers

  #lead(partition: Partition): void {
    const isPreferred = (worker: Worker) => this.#options.hasPreference === false || isPreferredIn(partition.view, worker)
    partition.core = new DispatchCore({ shared: { isPreferred, sizesPools: false } }, this.#now())
    partition.deliveredMs.clear()
    const { namespace } = partition
    const meta = { name: namespace, uid: namespace, resourceVersion: '1', generation: 1, creationTimestamp: rfc3339(epochMs) }
    this.#observe(partition, { kind: 'NamespaceChanged', namespace: { apiVersion: 'v1', kind: 'Namespace', metadata: meta } })
    this.#observe(partition, { kind: 'PoolChanged', pool: testPool('default', { mode: 'External' }) })
    const subject = { kind: 'Stack', namespace, name: 'app', uid: 'u' } as const
    this.#observe(partition, { kind: 'SubjectChanged', subject, recordedEpoch: Number.POSITIVE_INFINITY })
    for (const { object } of this.#workers.values())
      if (this.#sees(partition, object.metadata.name)) this.#observe(partition, { kind: 'WorkerChanged', worker: object })
    for (const lease of this.#leases.values())
      if (this.#sees(partition, lease.worker)) this.#observe(partition, { kind: 'LeaseChanged', lease })
    for (const { run } of this.#runs.values())
      if (run.metadata.namespace === namespace) this.#observe(partition, { kind: 'RunChanged', run, isInitial: true })
    this.#decideIn(partition, 0)
  }

  #now = () => ({ wallMs: this.#nowMs, monotonicMs: this.#nowMs - epochMs })

  #sees({ view }: Partition, worker: string): boolean {
    const bucket = workerBucketOf(worker)
    return !view || view.preferred.has(bucket) || view.spare.has(bucket)
  }

  #observe(partition: Partition, event: DispatchEvent): void {
    if (partition.core?.observe(event, this.#now())) this.#decideIn(partition, 1)
  }

  /** By a watch, or as the reply to a request: to the present core only. */
  #deliver(partition: Partition, stream: string, event: DispatchEvent): void {
    const { term } = partition
    const atMs = Math.max(this.#nowMs + this.#delayMs(), partition.deliveredMs.get(stream) ?? 0)
    partition.deliveredMs.set(stream, atMs)
    this.#at(atMs - this.#nowMs, () => {
      if (partition.term === term) this.#observe(partition, event)
    })
  }

  #decideIn(partition: Partition, inMs: number): void {
    const dueMs = this.#nowMs + inMs
    if (partition.dueMs <= dueMs) return
    partition.dueMs = dueMs
    this.#at(inMs, () => {
      if (partition.dueMs !== dueMs) return
      partition.dueMs = Number.POSITIVE_INFINITY
      if (!partition.core) return
      const { actions, requeueAfterMs } = partition.core.decide(this.#now(), this.#random)
      for (const action of actions) {
        const { term } = partition
        this.#at(this.#delayMs(), () =>
          this.#execute(action, partition, event => {
            if (partition.term === term) this.#deliver(partition, replyStreams[action.kind] ?? 'runs', event)
          }),
        )
      }
      if (requeueAfterMs !== undefined) this.#decideIn(partition, requeueAfterMs)
    })
  }

  #crashDispatcher(): void {
    const partition = this.#partitions[Math.floor(this.#random() * this.#partitions.length)]!
    partition.term++
    partition.core = undefined
    partition.dueMs = Number.POSITIVE_INFINITY
    const { term } = partition
    this.#at(500 + this.#random() * 3_000, () => {
      if (partition.term === term && !partition.core) this.#lead(partition)
    })
  }

  #execute(action: DispatchAction, partition: Partition, reply: (event: DispatchEvent) => void): void {
    const write = (object: ObjectVersion, change: () => boolean) =>
      reply({ kind: 'WriteSettled', object, outcome: change() ? 'Written' : 'Rejected' })
    switch (action.kind) {
      case 'AssignRun': {
        const { object, worker: workerName, atMs, finalizers } = action
        write(object, () =>
          this.#changeRun(object, run => ({
            ...run,
            metadata: { ...run.metadata, finalizers: [...finalizers] },
            spec: { ...run.spec, workerName, assignedAt: rfc3339(atMs) },
          })),
        )
        return
      }
      case 'PatchRunStatus': {
        const { object, status } = action
        if (status.phase === 'Lost') this.#checkLoss(object)
        const { phase } = status
        write(object, () =>
          this.#changeRun(object, run => ({
            ...run,
            status: { phase, ...(status.reason && { reason: status.reason }), finishedAt: status.finishedAt } as Run['status'],
          })),
        )
        return
      }
      case 'ConfirmLoss': {
        const { worker, lease } = action
        const live = this.#leases.get(worker)
        const outcome = lossOf(live, lease)
        if (outcome === 'Lost' && live) {
          this.#leases.delete(worker)
          for (const other of this.#partitions)
            if (this.#sees(other, worker)) this.#deliver(other, 'leases', { kind: 'LeaseDeleted', worker })
        }
        const isUnwatched = !this.#sees(partition, worker)
        const renewed = outcome === 'Renewed' && live && isUnwatched && { lease: { ...live, isOfWorker: false, isUnwatched } }
        reply({ kind: 'LossSettled', worker, outcome, ...renewed })
        return
      }
      case 'DeleteWorker': {
        const { object } = action
        const hasRuns = [...this.#runs.values()].some(({ run }) => run.spec.workerName === object.name && !isEnded(run))
        const worker = this.#workers.get(object.name)
        if (hasRuns) reply({ kind: 'WriteSettled', object, outcome: 'Failed' })
        else {
          write(object, () => worker?.object.metadata.resourceVersion === object.resourceVersion && this.#workers.delete(object.name))
          if (worker && !this.#workers.has(object.name))
            for (const other of this.#partitions)
              if (this.#sees(other, object.name)) this.#deliver(other, 'workers', { kind: 'WorkerDeleted', worker: worker.object })
        }
        return
      }
      case 'StartWorkers':
      case 'DrainWorker':
      case 'PatchPoolStatus':
        this.#violations.push(`${action.kind} by a dispatcher that does not size pools`)
        return
      default:
        return
    }
  }

  // ---- Runs

  #createRun(job: Job): void {
    const { namespace } = job.partition
    job.attempts++
    const name = `job-${job.id}-${job.attempts}`
    const run = testRun(name, { namespace, atMs: this.#nowMs - epochMs, version: String(++this.#version) })
    this.#runs.set(`${namespace}/${name}`, { run, job, starts: 0 })
    this.#deliver(job.partition, 'runs', { kind: 'RunChanged', run })
  }

  /** Writes only at this version, if it is given. Returns whether it was written. */
  #changeRun(object: Pick<ObjectVersion, 'namespace' | 'name'> & { resourceVersion?: string }, change: (run: Run) => Run): boolean {
    const entry = this.#runs.get(`${object.namespace}/${object.name}`)!
    const { run: before, job } = entry
    if (object.resourceVersion !== undefined && before.metadata.resourceVersion !== object.resourceVersion) return false
    if (isEnded(before)) return false
    const next = change(before)
    const run = { ...next, metadata: { ...next.metadata, resourceVersion: String(++this.#version) } }
    entry.run = run
    if (before.spec.workerName !== undefined && run.spec.workerName !== before.spec.workerName)
      this.#violations.push(`${object.name} is assigned a second time`)
    this.#deliver(job.partition, 'runs', { kind: 'RunChanged', run })
    const worker = this.#workers.get(run.spec.workerName ?? '')
    if (worker) this.#deliverToWorker(worker, run)
    if (isEnded(run)) this.#runEnded(run, job)
    return true
  }

  #runEnded({ metadata, status }: Run, job: Job): void {
    if (status?.phase === 'Succeeded') job.isDone = true
    else {
      const isBusy = status?.reason === workerBusyReason
      if (isBusy) this.#rejected++
      else this.#lost++
      if (isBusy && this.#runs.get(`${metadata.namespace}/${metadata.name}`)!.starts > 0)
        this.#violations.push(`${metadata.name} was rejected and started`)
      // The Stack controller.
      this.#at(this.#delayMs(), () => this.#createRun(job))
    }
  }

  /** Invariant 2. */
  #checkLoss({ name, namespace }: ObjectVersion): void {
    const { run } = this.#runs.get(`${namespace}/${name}`)!
    if (!isEnded(run) && this.#workers.get(run.spec.workerName ?? '')?.isAlive)
      this.#violations.push(`${name} is lost, and its worker renews its Lease`)
  }

  // ---- workers

  #addWorker(): void {
    const { slots, lifecycle = 'Warm' } = this.#options
    const name = `w-${this.#workerNumber++}`
    const object = this.#versioned(testWorker(name, { slots, lifecycle, labels: { [labels.workerBucket]: workerBucketOf(name) } }))
    const assignments = new RunAssignments({ workerName: name, slots, lifecycle })
    const worker: SimulatedWorker = {
      ...{
        name,
        assignments,
        executing: new Map<string, Run>(),
        object,
        leaseVersion: '',
        isAlive: true,
        isReporting: false,
        deliveredMs: 0,
        lastNamespace: undefined,
      },
    }
    this.#workers.set(name, worker)
    this.#renew(worker)
    for (const partition of this.#partitions)
      if (this.#sees(partition, name)) this.#deliver(partition, 'workers', { kind: 'WorkerChanged', worker: object })
  }

  #versioned = (object: Worker): Worker => ({
    ...object,
    metadata: { ...object.metadata, uid: `uid-${object.metadata.name}`, resourceVersion: String(++this.#version) },
  })

  #renew(worker: SimulatedWorker): void {
    if (!worker.isAlive) return
    const { name } = worker
    if (worker.leaseVersion !== '' && !this.#leases.has(name)) this.#violations.push(`the Lease of ${name} was deleted while it renewed it`)
    worker.leaseVersion = String(++this.#version)
    const lease: WorkerLease = {
      worker: name,
      uid: `lease-${name}`,
      resourceVersion: worker.leaseVersion,
      isOfWorker: true,
      durationMs: defaults.leaseDurationMs,
    }
    this.#leases.set(name, lease)
    for (const partition of this.#partitions)
      if (this.#sees(partition, name)) this.#deliver(partition, 'leases', { kind: 'LeaseChanged', lease })
    this.#at(renewMs, () => this.#renew(worker))
  }

  /** It stops with all that it executes; another one takes its place. */
  #loseWorker(): void {
    const alive = [...this.#workers.values()].filter(({ isAlive }) => isAlive)
    const worker = alive[Math.floor(this.#random() * alive.length)]
    if (!worker) return
    worker.isAlive = false
    worker.executing.clear()
    this.#at(this.#random() * 20_000, () => this.#addWorker())
  }

  /** By its merged watch, which keeps the order of versions. */
  #deliverToWorker(worker: SimulatedWorker, run: Run): void {
    const atMs = Math.max(this.#nowMs + this.#delayMs(), worker.deliveredMs)
    worker.deliveredMs = atMs
    this.#at(atMs - this.#nowMs, () => {
      if (!worker.isAlive) return
      const admission = worker.assignments.observe(run)
      if (admission === 'accepted') this.#startNext(worker)
      if (admission !== 'rejected') return
      this.#report(worker, 0)
      const { name, namespace = '' } = run.metadata
      const status = { phase: 'Lost', reason: workerBusyReason, finishedAt: rfc3339(this.#nowMs) } as const
      this.#at(this.#delayMs(), () => this.#changeRun({ name, namespace }, current => ({ ...current, status })))
    })
  }

  #startNext(worker: SimulatedWorker): void {
    const { slots } = this.#options
    if (worker.executing.size >= slots) return
    const run = worker.assignments.startNext()
    if (!run) return
    const { name, namespace = '', uid } = run.metadata
    const entry = this.#runs.get(`${namespace}/${name}`)!
    entry.starts++
    if (entry.starts > 1) this.#violations.push(`${name} is executed twice`)
    worker.executing.set(uid, run)
    if (worker.executing.size > slots) this.#violations.push(`${worker.name} executes ${worker.executing.size} Runs in ${slots} slots`)
    // As `WorkerStatusReporter.started`.
    const showsFreeSlot = (worker.object.status?.runs ?? []).length < worker.executing.size
    this.#report(worker, namespace === worker.lastNamespace && !showsFreeSlot ? reportMs : 0)
    worker.lastNamespace = namespace
    this.#at(
      this.#delayMs(),
      () => worker.isAlive && this.#changeRun({ name, namespace }, current => ({ ...current, status: { phase: 'Applying' } })),
    )
    this.#at(entry.job.durationMs + 40, () => {
      if (!worker.isAlive) return
      this.#changeRun({ name, namespace }, current => ({ ...current, status: { phase: 'Succeeded', finishedAt: rfc3339(this.#nowMs) } }))
      // Its directory is removed.
      this.#at(this.#random() * 100, () => {
        worker.executing.delete(uid)
        worker.assignments.ended(uid)
        this.#report(worker, reportMs)
        this.#startNext(worker)
        if (this.#options.lifecycle === 'OneShot' && worker.executing.size === 0) this.#endOneShot(worker)
      })
    })
  }

  /** It deletes its Worker, then its Lease, and another one is started. */
  #endOneShot(worker: SimulatedWorker): void {
    const { name } = worker
    this.#at(this.#random() * 300, () => {
      if (!worker.isAlive) return
      worker.isAlive = false
      this.#workers.delete(name)
      this.#leases.delete(name)
      for (const partition of this.#partitions) {
        if (!this.#sees(partition, name)) continue
        this.#deliver(partition, 'workers', { kind: 'WorkerDeleted', worker: worker.object })
        this.#deliver(partition, 'leases', { kind: 'LeaseDeleted', worker: name })
      }
      this.#at(this.#random() * startMs, () => this.#addWorker())
    })
  }

  #report(worker: SimulatedWorker, inMs: number): void {
    if (worker.isReporting && inMs > 0) return
    if (inMs > 0) worker.isReporting = true
    this.#at(inMs, () => {
      if (inMs > 0) worker.isReporting = false
      if (!worker.isAlive || !this.#workers.has(worker.name)) return
      const runs = [...worker.executing.values()].map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
      const hasEnded = this.#options.lifecycle === 'OneShot' && runs.length === 0
      const status = { phase: runs.length > 0 ? 'Busy' : hasEnded ? 'Draining' : 'Ready', runs } as const
      if (equalJson(worker.object.status, status)) return
      worker.object = this.#versioned({ ...worker.object, status })
      for (const partition of this.#partitions)
        if (this.#sees(partition, worker.name)) this.#deliver(partition, 'workers', { kind: 'WorkerChanged', worker: worker.object })
    })
  }
}
