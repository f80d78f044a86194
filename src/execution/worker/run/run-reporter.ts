import { setTimeout as delay } from 'node:timers/promises'
import {
  clearedPendingStatus,
  endedPhases,
  isEnded,
  type PendingOperations,
  type Run,
  type RunStatus,
  runPhases,
  runResource,
} from '../../../api/index.ts'
import { type Client, ConnectionError, compareResourceVersions } from '../../../kubernetes/client/index.ts'
import { equalJson, isReason, rfc3339, StatusError } from '../../../kubernetes/object/index.ts'
import { exponentialDelayMs } from '../../../kubernetes/util/index.ts'
import { RunStoppedError } from './stop-cause.ts'

/** Progress is written at most once in this interval. */
export const progressIntervalMs = 500

/** A phase is reported after this delay, together with the next one if that comes first. */
export const coalesceDelayMs = 250

/**
 * The same for the first phases, so that a quick Run costs one write, its result. Shorter than the time after which dispatch writes the
 * phase Assigned of a Run that its worker has not accepted.
 */
export const firstReportDelayMs = 2_000

const retryBackoff = { minMs: 50, maxMs: 1_000 }

/** A partial status; null removes a field. */
type Report = { readonly [Field in keyof RunStatus]?: RunStatus[Field] | null } & { readonly phase: RunStatus['phase'] }

type ProgressReport = Pick<Report, 'progress' | 'pendingOperations'>

export type RunReporterOptions = {
  client: Client
  run: Run
  workerName: string
  /** False once another process may declare this worker lost (invariant 2). */
  mayWrite(): boolean
  /** Timeout of one attempt. Default: 3,000. */
  attemptMs?: number
}

/**
 * Writes the status of one Run. Phases only advance. Each write carries the resourceVersion it was decided from, so it cannot overwrite
 * a Run that meanwhile became Lost or Canceled or was assigned to another worker.
 */
export class RunReporter {
  readonly #options: RunReporterOptions
  readonly #key: { name: string; namespace: string }
  #run: Run
  #queue: Promise<unknown> = Promise.resolve()
  #progress: ProgressReport | undefined
  /** The status may list operations that were in progress: a later write replaces or removes them. */
  #hasReportedOperations = false
  #progressTimer: NodeJS.Timeout | undefined
  #progressAtMs = 0
  /** Included in the next write. */
  #pending:
    | { readonly report: Report; readonly dueMs: number; readonly timer: NodeJS.Timeout; readonly written: PromiseWithResolvers<void> }
    | undefined
  #isClosed = false

  constructor(options: RunReporterOptions) {
    this.#options = options
    this.#run = options.run
    this.#key = { name: options.run.metadata.name, namespace: options.run.metadata.namespace ?? 'default' }
  }

  /** The newest version observed. */
  get run(): Run {
    return this.#run
  }

  /** Takes a version that a watch delivered, if it is newer than the known one. */
  observe(run: Run): void {
    if (compareResourceVersions(run.metadata.resourceVersion, this.#run.metadata.resourceVersion) >= 0) this.#run = run
  }

  /**
   * Reports Preparing after {@link firstReportDelayMs}, or together with the result if that comes first; sooner if the status has a
   * pending reason, which is no longer true. Resolves and rejects as that write does.
   *
   * Until then only the assignment shows that this worker has the Run. A later worker of the same name cannot mistake it for its own:
   * the Worker remains until the Run has ended.
   */
  reportStarted(): Promise<void> {
    const { reason, queuePosition } = this.#run.status ?? {}
    const delayMs = reason === undefined && queuePosition === undefined ? firstReportDelayMs : coalesceDelayMs
    return this.#reportIn(delayMs, { phase: 'Preparing', startedAt: rfc3339(Date.now()), ...clearedPendingStatus })
  }

  /**
   * Writes a phase and its fields, together with any pending report; retries until it is written.
   * @throws {RunStoppedError} OwnershipLost if the Run is no longer this worker's, LeaseLost if the Lease was not renewed in time.
   */
  async reportPhase(report: Report): Promise<void> {
    clearTimeout(this.#progressTimer)
    this.#progressTimer = undefined
    this.#progress = undefined
    const pending = this.#pending
    this.#pending = undefined
    clearTimeout(pending?.timer)
    const cleared = this.#hasReportedOperations && endedPhases.includes(report.phase) ? { pendingOperations: null } : {}
    const writing = this.#enqueue(() => this.#write({ ...pending?.report, ...cleared, ...report }))
    if (pending) writing.then(pending.written.resolve, pending.written.reject)
    await writing
  }

  /**
   * Reports a phase after {@link coalesceDelayMs}, or together with another one if that is written first. Resolves and rejects as that
   * write does.
   */
  reportPhaseSoon(report: Report): Promise<void> {
    return this.#reportIn(coalesceDelayMs, report)
  }

  /** Writes no pending report any more; its promise remains pending. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#pending?.timer)
    clearTimeout(this.#progressTimer)
  }

  /** A report that is pending already keeps its time. */
  #reportIn(delayMs: number, report: Report): Promise<void> {
    const timer = this.#pending?.timer ?? setTimeout(() => void this.#reportPending(), delayMs)
    const dueMs = this.#pending?.dueMs ?? performance.now() + delayMs
    const written = this.#pending?.written ?? Promise.withResolvers<void>()
    this.#pending = { report: { ...this.#pending?.report, ...report }, dueMs, timer, written }
    return written.promise
  }

  #reportPending(): Promise<void> {
    return this.#pending ? this.reportPhase(this.#pending.report).catch(() => {}) : Promise.resolve()
  }

  /**
   * Reports progress, rate-limited, together with a pending phase; only the newest is written. Never fails.
   * @param operations those in progress whose result is not known without this worker: they are written within {@link progressIntervalMs}, also if
   * a pending phase is due later.
   */
  reportProgress(progress: NonNullable<RunStatus['progress']>, operations?: PendingOperations): void {
    const report: ProgressReport = {
      progress,
      ...((operations || this.#hasReportedOperations) && { pendingOperations: operations ?? null }),
    }
    if (operations) this.#hasReportedOperations = true
    if (this.#pending) {
      this.#pending = { ...this.#pending, report: { ...this.#pending.report, ...report } }
      if (operations) this.#reportPendingWithin(progressIntervalMs)
      return
    }
    this.#progress = report
    if (this.#progressTimer || this.#isClosed) return
    const waitMs = Math.max(0, this.#progressAtMs + progressIntervalMs - performance.now())
    this.#progressTimer = setTimeout(() => this.#flushProgress(), waitMs)
  }

  #reportPendingWithin(delayMs: number): void {
    const pending = this.#pending
    if (!pending || performance.now() + delayMs >= pending.dueMs) return
    clearTimeout(pending.timer)
    this.#pending = { ...pending, dueMs: performance.now() + delayMs, timer: setTimeout(() => void this.#reportPending(), delayMs) }
  }

  #flushProgress(): void {
    this.#progressTimer = undefined
    this.#progressAtMs = performance.now()
    void this.#enqueue(async () => {
      const progress = this.#progress
      if (!progress || !this.#options.mayWrite() || isEnded(this.#run)) return
      this.#progress = undefined
      try {
        await this.#attempt(progress)
      } catch (error) {
        if (isReason(error, 'Conflict')) this.#run = await this.#get()
      }
    }).catch(() => {})
  }

  async #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work, work)
    this.#queue = done.catch(() => {})
    return done
  }

  async #write(status: Report): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      if (!this.#options.mayWrite()) throw new RunStoppedError({ kind: 'LeaseLost' })
      if (this.#isWritten(status)) return
      this.#check(status)
      try {
        await this.#attempt(status)
        return
      } catch (error) {
        if (isReason(error, 'NotFound')) throw new RunStoppedError({ kind: 'OwnershipLost', detail: 'it was deleted' })
        if (isReason(error, 'Conflict')) {
          this.#run = await this.#get()
          continue
        }
        if (!isTransient(error)) throw error
        await delay(exponentialDelayMs(attempt, retryBackoff))
      }
    }
  }

  async #attempt(status: Partial<Report>): Promise<void> {
    const { name, namespace } = this.#key
    const { resourceVersion } = this.#run.metadata
    const signal = AbortSignal.timeout(this.#options.attemptMs ?? 3_000)
    this.#run = await this.#options.client.resource(runResource).patchStatus(name, { status }, { namespace, resourceVersion, signal })
  }

  async #get(): Promise<Run> {
    const { name, namespace } = this.#key
    try {
      return await this.#options.client
        .resource(runResource)
        .get(name, { namespace, signal: AbortSignal.timeout(this.#options.attemptMs ?? 3_000) })
    } catch (error) {
      if (isReason(error, 'NotFound')) throw new RunStoppedError({ kind: 'OwnershipLost', detail: 'it was deleted' })
      if (isTransient(error)) return this.#run
      throw error
    }
  }

  /** The response to a write may be lost although the write succeeded. */
  #isWritten(status: Report): boolean {
    const now: Partial<RunStatus> = this.#run.status ?? {}
    return Object.entries(status).every(([field, value]) => equalJson(now[field as keyof RunStatus] ?? null, value ?? null))
  }

  #check({ phase }: Pick<RunStatus, 'phase'>): void {
    const { spec, status, metadata } = this.#run
    const reject = (detail: string): RunStoppedError => new RunStoppedError({ kind: 'OwnershipLost', detail })
    if (metadata.uid !== this.#options.run.metadata.uid) throw reject('it was deleted and created again')
    if (spec.workerName !== this.#options.workerName) throw reject(`it is assigned to worker ${spec.workerName ?? '(none)'}`)
    if (isEnded(this.#run)) throw reject(`it is already ${status?.phase}`)
    const before = status?.phase ?? 'Queued'
    if (runPhases.indexOf(phase) < runPhases.indexOf(before)) throw reject(`it is already ${before}`)
  }
}

function isTransient(error: unknown): boolean {
  if (error instanceof StatusError) return error.code >= 500 || error.code === 429 || error.code === 408
  return error instanceof ConnectionError || (error instanceof DOMException && error.name === 'TimeoutError')
}
