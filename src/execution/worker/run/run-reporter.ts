import { setTimeout as delay } from 'node:timers/promises'
import { clearedPendingStatus, isEnded, type Run, type RunStatus, runPhases, runResource } from '../../../api/index.ts'
import { type Client, ConnectionError, compareResourceVersions } from '../../../kubernetes/client/index.ts'
import { equalJson, isReason, rfc3339, StatusError } from '../../../kubernetes/object/index.ts'
import { StopError } from './stop-cause.ts'

/** Progress is written at most this often. */
export const progressIntervalMs = 500

/** A phase that writes nothing outside is told after so long, and not at all if it is over by then. */
export const coalesceDelayMs = 250

/** What is said of a Run; null takes back what was said before. */
type Report = { readonly [Field in keyof RunStatus]?: RunStatus[Field] | null } & { readonly phase: RunStatus['phase'] }

export type RunReporterOptions = {
  client: Client
  run: Run
  workerName: string
  /** False from the moment on when somebody else may call this worker dead (invariant 2). */
  mayWrite(): boolean
  /** One attempt may take this long. Default: 3,000. */
  attemptMs?: number
}

/**
 * Writes the status of one Run. Phases go only forward; each write carries the resourceVersion it was decided on, so that a Run
 * which became Lost, Canceled or another worker's meanwhile is never written over.
 */
export class RunReporter {
  readonly #options: RunReporterOptions
  readonly #key: { name: string; namespace: string }
  #run: Run
  #queue: Promise<unknown> = Promise.resolve()
  #progress: RunStatus['progress']
  #progressTimer: NodeJS.Timeout | undefined
  #progressAtMs = 0
  /** Goes with the next write. */
  #noted: { readonly report: Report; readonly timer: NodeJS.Timeout; readonly written: PromiseWithResolvers<void> } | undefined

  constructor(options: RunReporterOptions) {
    this.#options = options
    this.#run = options.run
    this.#key = { name: options.run.metadata.name, namespace: options.run.metadata.namespace ?? 'default' }
  }

  /** The newest version seen. */
  get run(): Run {
    return this.#run
  }

  /** Takes a version that a watch brought, if it is newer than what is known. */
  observe(run: Run): void {
    if (compareResourceVersions(run.metadata.resourceVersion, this.#run.metadata.resourceVersion) >= 0) this.#run = run
  }

  /**
   * Says that the worker has begun.
   * @throws {StopError} as {@link reportPhase}.
   */
  async reportStarted(): Promise<void> {
    await this.reportPhase({ phase: 'Preparing', startedAt: rfc3339(Date.now()), ...clearedPendingStatus })
  }

  /**
   * Writes a phase and what belongs to it, and what was noted for it, again and again until it is there.
   * @throws {StopError} OwnershipLost when the Run is not ours (any more), LeaseLost when time ran out.
   */
  async reportPhase(report: Report): Promise<void> {
    clearTimeout(this.#progressTimer)
    this.#progressTimer = undefined
    this.#progress = undefined
    const noted = this.#noted
    this.#noted = undefined
    clearTimeout(noted?.timer)
    const writing = this.#enqueue(() => this.#write({ ...noted?.report, ...report }))
    if (noted) writing.then(noted.written.resolve, noted.written.reject)
    await writing
  }

  /**
   * Notes a phase in which nothing outside is written: it is told after {@link coalesceDelayMs}, or together with the next one if that comes
   * sooner. Resolves and rejects as that write does.
   */
  reportPhaseSoon(report: Report): Promise<void> {
    const written = this.#noted?.written ?? Promise.withResolvers<void>()
    clearTimeout(this.#noted?.timer)
    const timer = setTimeout(() => void this.reportPhase(report).catch(() => {}), coalesceDelayMs)
    this.#noted = { report: { ...this.#noted?.report, ...report }, timer, written }
    return written.promise
  }

  /** Notes progress; written soon, if nothing newer comes first. Never fails. */
  reportProgress(progress: NonNullable<RunStatus['progress']>): void {
    this.#progress = progress
    if (this.#progressTimer) return
    const waitMs = Math.max(0, this.#progressAtMs + progressIntervalMs - performance.now())
    this.#progressTimer = setTimeout(() => this.#flushProgress(), waitMs)
  }

  #flushProgress(): void {
    this.#progressTimer = undefined
    this.#progressAtMs = performance.now()
    void this.#enqueue(async () => {
      const progress = this.#progress
      if (!progress || !this.#options.mayWrite() || isEnded(this.#run)) return
      this.#progress = undefined
      try {
        await this.#attempt({ progress })
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
    for (let waitMs = 50; ; waitMs = Math.min(waitMs * 2, 1_000)) {
      if (!this.#options.mayWrite()) throw new StopError({ kind: 'LeaseLost' })
      if (this.#isWritten(status)) return
      this.#check(status)
      try {
        await this.#attempt(status)
        return
      } catch (error) {
        if (isReason(error, 'NotFound')) throw new StopError({ kind: 'OwnershipLost', detail: 'it was deleted' })
        if (isReason(error, 'Conflict')) {
          this.#run = await this.#get()
          continue
        }
        if (!isTransient(error)) throw error
        await delay(waitMs)
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
      if (isReason(error, 'NotFound')) throw new StopError({ kind: 'OwnershipLost', detail: 'it was deleted' })
      if (isTransient(error)) return this.#run
      throw error
    }
  }

  /** The answer to a write may get lost although the write is there. */
  #isWritten(status: Report): boolean {
    const now: Partial<RunStatus> = this.#run.status ?? {}
    return Object.entries(status).every(([field, value]) => equalJson(now[field as keyof RunStatus] ?? null, value ?? null))
  }

  #check({ phase }: Pick<RunStatus, 'phase'>): void {
    const { spec, status, metadata } = this.#run
    const refuse = (detail: string): StopError => new StopError({ kind: 'OwnershipLost', detail })
    if (metadata.uid !== this.#options.run.metadata.uid) throw refuse('it was deleted and made anew')
    if (spec.workerName !== this.#options.workerName) throw refuse(`it belongs to worker ${spec.workerName ?? '(none)'}`)
    if (isEnded(this.#run)) throw refuse(`it is already ${status?.phase}`)
    const before = status?.phase ?? 'Queued'
    if (runPhases.indexOf(phase) < runPhases.indexOf(before)) throw refuse(`it is already ${before}`)
  }
}

function isTransient(error: unknown): boolean {
  if (error instanceof StatusError) return error.code >= 500 || error.code === 429 || error.code === 408
  return error instanceof ConnectionError || (error instanceof DOMException && error.name === 'TimeoutError')
}
