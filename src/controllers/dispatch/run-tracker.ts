import { isEnded, type PolicySource, type Run, type Subject, subjectOf } from '../../api/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import { isUnaccepted } from './acceptance.ts'
import type { ObjectVersion } from './object-version.ts'
import type { ExitFailure } from './pool/index.ts'
import { type RunOwner, type RunQueue, withPolicies } from './queue/index.ts'
import { makeRunRecord, type RunRecord, updateRunRecord } from './run-record.ts'
import { type TerminatingRun, TerminatingRuns } from './terminating-runs.ts'
import { type WorkerLoad, withRun } from './worker-load.ts'

export type RunTrackerOptions = {
  readonly queue: RunQueue
  /** What the Tenant of the namespace and the pool require; undefined: not known yet. Default: nothing. */
  readonly policiesFor?: (namespace: string, pool: string) => readonly PolicySource[] | undefined
  /** What else decides about the place of a Run. Default: nothing. */
  readonly ownerOf?: (namespace: string, pool: string) => RunOwner
  /** When the present Worker of this name was created, in milliseconds; undefined if there is none. */
  readonly workerCreatedMs: (worker: string) => number | undefined
  /** Called when the load of a Worker has changed. */
  readonly onLoad: (worker: string, load: WorkerLoad | undefined) => void
  /** Called when a Run that is assigned to the worker was added or has ended. */
  readonly onWorkerRuns: (worker: string, hasRuns: boolean) => void
  /** Called when the worker has started a Run. */
  readonly onStarted: (worker: string) => void
}

/** See `RunChanged` in dispatch-event.ts. */
export type RunObservation = {
  readonly isInitial?: boolean | undefined
  readonly nowMs: number
}

/**
 * The Runs that have not ended, updated one Run at a time; keeps the {@link RunQueue} and the load of each Worker up to date.
 *
 * A Run is queued, then active from the moment at which {@link assume} records its assignment; if the write fails, {@link settle} queues it again.
 */
export class RunTracker {
  readonly #options: RunTrackerOptions
  readonly #queue: RunQueue
  readonly #records = new Map<string, RunRecord>()
  /** By {@link subjectKey}. */
  readonly #bySubject = new Map<string, RunRecord[]>()
  readonly #byWorker = new Map<string, Set<RunRecord>>()
  readonly #load = new Map<string, WorkerLoad>()
  /** By key of each subject that exists: the highest epoch whose end it has recorded. */
  readonly #subjects = new Map<string, number>()
  /** Runs that `run-cleanup.ts` may have to end or cancel. */
  readonly #toCleanUp = new Set<RunRecord>()
  readonly #unaccepted = new Set<RunRecord>()
  readonly #terminating = new TerminatingRuns()

  constructor(options: RunTrackerOptions) {
    this.#options = options
    this.#queue = options.queue
  }

  // ---- queries

  get(key: string): RunRecord | undefined {
    return this.#records.get(key)
  }

  /** The Runs that are assigned to this worker. */
  activeOn(worker: string): Iterable<RunRecord> {
    return this.#byWorker.get(worker) ?? []
  }

  hasActive(worker: string): boolean {
    return this.#byWorker.has(worker)
  }

  /** All Runs that are assigned to a worker. */
  *active(): Generator<RunRecord> {
    for (const runs of this.#byWorker.values()) yield* runs
  }

  load(worker: string): WorkerLoad | undefined {
    return this.#load.get(worker)
  }

  hasSubject({ subject, isSubjectMissing }: RunRecord): boolean {
    return !isSubjectMissing && this.#subjects.has(subjectKey(subject))
  }

  toCleanUp(): Iterable<RunRecord> {
    return this.#toCleanUp
  }

  /** Assigned Runs that their worker has not started yet, in the order of their assignment. */
  unaccepted(): ReadonlySet<RunRecord> {
    return this.#unaccepted
  }

  releasable(): Iterable<TerminatingRun> {
    return this.#terminating.releasable()
  }

  // ---- observations; each returns true if a decision is due

  observe(run: Run, { isInitial = false, nowMs }: RunObservation): boolean {
    const key = objectKey(run)
    const record = this.#records.get(key)
    if (isEnded(run)) return this.#observeEnded(run, record, { isInitial, nowMs })
    if (!record) {
      this.#add(makeRunRecord(run), nowMs)
      return true
    }
    const { phase, worker, isCanceled, isDeleted } = record
    updateRunRecord(record, run)
    // Progress does not affect scheduling; without this check every resource that an engine finishes would cause a decision.
    const affectsScheduling =
      phase !== record.phase || worker !== record.worker || isCanceled !== record.isCanceled || isDeleted !== record.isDeleted
    const wasQueued = worker === undefined
    if (wasQueued || affectsScheduling) this.#place(record, nowMs)
    if (record.worker !== undefined && hasStarted(record.phase) && !hasStarted(phase)) this.#options.onStarted(record.worker)
    return affectsScheduling
  }

  delete(run: Run, nowMs: number): boolean {
    const key = objectKey(run)
    this.#terminating.deleted(run, subjectKey(subjectOf(run)))
    const record = this.#records.get(key)
    if (!record) return false
    this.#queue.remove(key)
    this.#queue.end(key, nowMs)
    this.#remove(record)
    return true
  }

  /** The policies of Tenants or pools have changed: queued Runs may require other Workers. */
  policiesChanged(): void {
    for (const record of this.#records.values()) {
      if (!this.#queue.find(record.key)) continue
      this.applyPolicies(record)
      this.#queue.put(record.request)
    }
  }

  /** Updates the request of a Run without a Worker. */
  applyPolicies(record: RunRecord): void {
    const { request, requested } = record
    const { policiesFor, ownerOf } = this.#options
    const { namespace } = request
    if (policiesFor)
      record.request = withPolicies(request, requested, policiesFor(namespace, requested.pool), ownerOf?.(namespace, requested.pool))
  }

  /** Records that the Run is assigned to a Worker; the assignment is being written. The queue and the inventory have recorded it already. */
  assume(record: RunRecord, worker: string): void {
    this.#loadOnto(record, worker)
  }

  /** A Run that is about to be created, assigned to the worker. The queue and the inventory have recorded it already. */
  expect(record: RunRecord, worker: string, nowMs: number): void {
    this.#add(record, nowMs)
    this.assume(record, worker)
  }

  /** The creation of an expected Run has ended. If the Run was not observed meanwhile, it was not created, or is observed later like any other. */
  creationSettled(key: string, nowMs: number): boolean {
    const record = this.#records.get(key)
    if (!record) return false
    const wasObserved = record.object.uid !== ''
    this.settle(key, nowMs)
    if (!wasObserved) {
      this.#queue.remove(key)
      this.#remove(record)
    }
    return !wasObserved
  }

  /** The last write to the Run has ended. If it was an assignment that failed, the Run is queued again. */
  settle(key: string, nowMs: number): void {
    const record = this.#records.get(key)
    if (!record || record.worker !== undefined || record.loadedOn === undefined) return
    const worker = record.loadedOn
    this.#queue.undoStart(key)
    this.#unload(record)
    const load = this.#load.get(worker)
    if (load) this.#setLoad(worker, { ...load, total: load.total - 1 })
    this.#place(record, nowMs)
  }

  /** The finalizer of a terminating Run was removed. */
  released(run: ObjectVersion): void {
    this.#terminating.released(run)
  }

  subjectChanged(subject: Subject, recordedEpoch: number, nowMs: number): boolean {
    const key = subjectKey(subject)
    const isNew = !this.#subjects.has(key)
    this.#subjects.set(key, recordedEpoch)
    const isReleasable = this.#terminating.recorded(key, recordedEpoch)
    return (isNew && this.#placeAll(key, nowMs, false)) || isReleasable
  }

  subjectDeleted(subject: Subject, nowMs: number): boolean {
    return this.#removeSubject(subjectKey(subject), nowMs, false)
  }

  /** The server has confirmed that the subject does not exist. */
  subjectMissing(subject: Subject, nowMs: number): boolean {
    return this.#removeSubject(subjectKey(subject), nowMs, true)
  }

  #removeSubject(key: string, nowMs: number, isMissing: boolean): boolean {
    this.#subjects.delete(key)
    const isReleasable = this.#terminating.recorded(key, Number.POSITIVE_INFINITY)
    return this.#placeAll(key, nowMs, isMissing) || isReleasable
  }

  workerDeleted(worker: string): void {
    if ((this.#load.get(worker)?.active ?? 0) === 0) this.#setLoad(worker, undefined)
  }

  // ---- transitions

  #add(record: RunRecord, nowMs: number): void {
    this.#records.set(record.key, record)
    const subject = subjectKey(record.subject)
    const siblings = this.#bySubject.get(subject)
    if (siblings) siblings.push(record)
    else this.#bySubject.set(subject, [record])
    this.#place(record, nowMs)
    if (record.worker !== undefined && hasStarted(record.phase)) this.#options.onStarted(record.worker)
  }

  /** Queues the Run, or counts it as active. */
  #place(record: RunRecord, nowMs: number): void {
    const { key, worker } = record
    if (worker !== undefined) this.#activate(record, worker, nowMs)
    else if (!this.#queue.isRunning(key)) {
      if (!this.hasSubject(record) || record.isCanceled || record.isDeleted) this.#queue.remove(key)
      else {
        this.applyPolicies(record)
        this.#queue.put(record.request)
      }
    }
    if (this.#needsCleanup(record)) this.#toCleanUp.add(record)
    else this.#toCleanUp.delete(record)
    if (worker !== undefined && isUnaccepted(record)) this.#unaccepted.add(record)
    else this.#unaccepted.delete(record)
  }

  #needsCleanup(record: RunRecord): boolean {
    const { worker, isCanceled, isDeleted, lostWith } = record
    return lostWith !== undefined || (isCanceled ? worker === undefined : isDeleted || !this.hasSubject(record))
  }

  #placeAll(subject: string, nowMs: number, isMissing: boolean): boolean {
    const records = this.#bySubject.get(subject)
    for (const record of records ?? []) {
      record.isSubjectMissing = isMissing
      this.#place(record, nowMs)
    }
    return records !== undefined
  }

  /** Marks the Runs of a lost worker; `run-cleanup.ts` ends them. */
  markLost(worker: string, nowMs: number): void {
    for (const record of this.activeOn(worker)) {
      record.lostWith = worker
      this.#place(record, nowMs)
    }
  }

  /**
   * The worker has ended. If it has crashed and exactly one Run was assigned to it, that Run is the probable cause, which is recorded when it is lost. With
   * several, none is: a hostile Run could otherwise stall the Stacks of its neighbors.
   */
  workerEnded(worker: string, { crash, loss, isGone, message }: ExitFailure): void {
    const runs = [...this.activeOn(worker)]
    const isSole = runs.length === 1 && (this.#load.get(worker)?.active ?? 1) === 1
    for (const run of runs) {
      if (loss) run.lossCause = loss
      else if (crash && isSole) run.lossCause = { ...crash, message: `${crash.message} while it executed only this Run` }
      else if (crash) run.lossCause = { reason: 'WorkerLost', message: `${crash.message} while it executed several Runs` }
      else if (isGone) run.lossCause = { reason: 'WorkerLost', message }
    }
  }

  #activate(record: RunRecord, worker: string, nowMs: number): void {
    const { key, request, assignedAtMs = nowMs } = record
    const { namespace, requirements, concurrency } = request
    const sinceMs = Math.min(nowMs, assignedAtMs)
    this.#queue.start({ key, namespace, pool: requirements.pool, concurrencyKey: concurrency?.key, sinceMs })
    this.#loadOnto(record, worker)
    const runs = this.#byWorker.get(worker) ?? new Set()
    if (runs.has(record)) return
    this.#byWorker.set(worker, runs.add(record))
    this.#options.onWorkerRuns(worker, true)
  }

  #observeEnded(run: Run, record: RunRecord | undefined, { isInitial, nowMs }: RunObservation): boolean {
    const key = objectKey(run)
    const subject = subjectKey(subjectOf(run))
    // A subject that does not exist records nothing and uses no epoch again.
    const isDue = this.#terminating.observe(run, subject, this.#subjects.get(subject) ?? Number.POSITIVE_INFINITY)
    const { workerName, assignedAt } = run.spec
    // Times are limited to the present. A clock that is ahead, or a worker that reports a false time, would overcharge its tenant: charges grow
    // exponentially with time.
    const atMs = (time: string) => Math.min(nowMs, Date.parse(time))
    const finishedAt = run.status?.finishedAt
    if (isInitial && assignedAt && finishedAt) {
      this.#queue.chargePastRun(run.metadata.namespace ?? '', atMs(finishedAt) - atMs(assignedAt), atMs(finishedAt))
    }
    if (record) {
      this.#queue.remove(key)
      this.#queue.end(key, finishedAt === undefined ? nowMs : atMs(finishedAt))
      if (workerName !== undefined && !hasStarted(record.phase) && hasStarted(run.status?.phase)) this.#options.onStarted(workerName)
      const wasLoaded = record.loadedOn !== undefined
      this.#remove(record)
      if (wasLoaded) return true
    }
    const createdMs = workerName === undefined ? undefined : this.#options.workerCreatedMs(workerName)
    if (workerName === undefined || createdMs === undefined || this.#load.has(workerName)) return isDue || record !== undefined
    // A Run assigned before the Worker was created belongs to a previous Worker of this name. Both times are whole seconds, rounded down.
    if (assignedAt === undefined || Date.parse(assignedAt) >= createdMs) {
      // The Run was observed only after its end; it still counts towards the total of a one-shot worker.
      this.#setLoad(workerName, { active: 0, total: 1 })
    }
    return isDue || record !== undefined
  }

  // ---- bookkeeping

  #remove(record: RunRecord): void {
    const { key, subject, worker } = record
    this.#records.delete(key)
    this.#toCleanUp.delete(record)
    this.#unaccepted.delete(record)
    const siblings = this.#bySubject.get(subjectKey(subject)) ?? []
    if (siblings.length > 1) siblings.splice(siblings.indexOf(record), 1)
    else this.#bySubject.delete(subjectKey(subject))
    this.#unload(record)
    const runs = worker === undefined ? undefined : this.#byWorker.get(worker)
    if (worker === undefined || !runs?.delete(record) || runs.size > 0) return
    this.#byWorker.delete(worker)
    this.#options.onWorkerRuns(worker, false)
  }

  #loadOnto(record: RunRecord, worker: string): void {
    if (record.loadedOn === worker) return
    this.#unload(record)
    record.loadedOn = worker
    this.#setLoad(worker, withRun(this.#load.get(worker), 1, record.request.requirements))
  }

  #unload(record: RunRecord): void {
    const { loadedOn: worker, request } = record
    if (worker === undefined) return
    record.loadedOn = undefined
    const load = withRun(this.#load.get(worker), -1, request.requirements)
    this.#setLoad(worker, load.active === 0 && this.#options.workerCreatedMs(worker) === undefined ? undefined : load)
  }

  #setLoad(worker: string, load: WorkerLoad | undefined): void {
    if (load) this.#load.set(worker, load)
    else this.#load.delete(worker)
    this.#options.onLoad(worker, load)
  }
}

/** Includes the namespace: the creator of a Run chooses the UID in its reference, and may choose that of a Stack in another namespace. */
function subjectKey({ kind, namespace, name, uid }: Subject): string {
  return `${kind}/${namespace}/${name}/${uid}`
}

/** A Run that is Lost does not count: nothing is known of its worker. */
function hasStarted(phase: string | undefined): boolean {
  return phase !== undefined && phase !== 'Queued' && phase !== 'Assigned' && phase !== 'Lost'
}
