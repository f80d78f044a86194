import { setTimeout as sleep } from 'node:timers/promises'
import { type Run, runPhases, runResource, systemNamespace } from '../../../api/index.ts'
import { type Client, leaseResource, listWatch } from '../../../kubernetes/client/index.ts'
import { isReason, objectKey, rfc3339 } from '../../../kubernetes/object/index.ts'
import { leaseRenewal } from '../lease/lease-renewal.ts'
import { deregister, patchWorkerStatus, type Registration, register } from '../lease/registration.ts'
import { rejectRun } from '../run/reject-run.ts'
import { RunReporter } from '../run/run-reporter.ts'
import { RunStoppedError } from '../run/stop-cause.ts'
import { WorkerStatusReporter } from '../worker-status-reporter.ts'
import { Latencies } from './latencies.ts'
import type { HollowProfile } from './profile.ts'
import { simulateRun } from './simulate-run.ts'
import { TimerWheel } from './timer-wheel.ts'

export type HollowFleetOptions = {
  readonly client: Client
  /** For Leases: a real worker renews over a connection of its own, and renewals queued behind other writes would be late. Default: `client`. */
  readonly renewalClient?: Client
  /** Workers are named `<prefix>-0`, `<prefix>-1`, …; the prefix must be unique. */
  readonly prefix: string
  readonly workers: number
  readonly pool: string
  readonly profile: HollowProfile
  /** Interval between renewals of a Lease, which lasts five times as long. Default: 2,000. */
  readonly renewMs?: number
  readonly version?: string
  readonly random?: () => number
  /** A worker of the fleet starts a Run. */
  onRunStarted?(run: Run): void
  /** A Run of the fleet has ended; undefined: another process ended or reassigned it. */
  onRunEnded?(run: Run, phase: string | undefined): void
  onError?(error: unknown): void
}

/** As for a real worker (`lease-timings.ts`: 2 s and 10 s). */
const renewalsPerLease = 5
/** Nothing is written during the last tenth of a Lease (invariant 2). */
const writableLeaseShare = 0.9
/** Concurrent registrations, and deregistrations. */
const registrationConcurrency = 64
/** Concurrent renewals; further ones wait here, because a server responds 429 to a user with too many requests in its queue. */
const renewalConcurrency = 128
/** Resolution of the timer wheel. */
const tickMs = 10

const startedPhases = runPhases.filter(phase => phase !== 'Queued' && phase !== 'Assigned')

/** The state of one worker. */
type HollowWorker = {
  readonly registration: Registration
  /** When its last successful renewal was sent, by `performance.now()`. */
  renewedAtMs: number
  isRenewing: boolean
  /** Key of its current Run. */
  run: string | undefined
  /** The end of its current Run is being written: its slot counts as free. */
  isEnding: boolean
  /** Started when that is written. */
  next: Run | undefined
  idleSinceMs: number
  readonly statusReporter: WorkerStatusReporter
}

/** Counted since the start of the fleet. */
export type FleetCounts = {
  registered: number
  /** Workers whose Lease was deleted: they were declared lost. */
  lost: number
  renewals: number
  /** Renewals skipped because the previous one had no response yet. */
  lateRenewals: number
  /** Renewals that failed with an error other than a lost Lease. */
  failedRenewals: number
  started: number
  succeeded: number
  failed: number
  canceled: number
  /** Runs that another process ended or reassigned. */
  revoked: number
  /** Runs that were assigned to a worker whose slot another dispatcher had used. */
  rejected: number
}

/**
 * Many workers in one process: real Workers, Leases and status reports, but no engines. It differs from as many processes in three
 * points: one timer wheel renews all Leases, instead of a thread each; one watch delivers the Runs of all; it does not drain.
 */
export class HollowFleet {
  readonly #options: HollowFleetOptions
  readonly #renewMs: number
  readonly #leaseMs: number
  readonly #workers: (HollowWorker | undefined)[]
  readonly #stopping = new AbortController()
  readonly #executions = new Set<Promise<void>>()
  /** Uids of Runs whose rejection is being written: they are not started, also if a slot gets free. */
  readonly #rejecting = new Set<string>()
  readonly counts: FleetCounts = {
    registered: 0,
    lost: 0,
    renewals: 0,
    lateRenewals: 0,
    failedRenewals: 0,
    started: 0,
    succeeded: 0,
    failed: 0,
    canceled: 0,
    revoked: 0,
    rejected: 0,
  }
  /** From the time a renewal was due to its response. */
  renewalLatencies = new Latencies()
  /** When renewals became due, by index of the worker: at most one entry for each worker. */
  readonly #due = new Map<number, number>()
  #renewing = 0
  #timer: NodeJS.Timeout | undefined
  #watching: Promise<void> | undefined
  #starting: Promise<void> | undefined

  constructor(options: HollowFleetOptions) {
    this.#options = options
    this.#renewMs = options.renewMs ?? 2_000
    this.#leaseMs = this.#renewMs * renewalsPerLease
    this.#workers = new Array(options.workers).fill(undefined)
  }

  /** Number of Runs in progress. */
  get activeRuns(): number {
    return this.#executions.size
  }

  /**
   * Registers all workers; each then renews its Lease and executes Runs.
   * @throws {RegistrationError} of the first worker that failed to register; call {@link stop} even then.
   */
  async start(): Promise<void> {
    const { workers } = this.#options
    const wheel = new TimerWheel(workers, this.#renewMs, performance.now())
    this.#timer = setInterval(() => wheel.due(performance.now(), (index, dueMs) => this.#renew(index, dueMs)), tickMs)
    this.#watching = this.#watchRuns()
    this.#starting = forEachIndex(workers, index => this.#register(index))
    await this.#starting
  }

  /** Discards the latencies so far, as after the registration. */
  resetLatencies(): void {
    this.renewalLatencies = new Latencies()
  }

  /** Starts no further Run, waits for those in progress, deletes all Workers and Leases. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#watching
    // The caller of `start` has received its error.
    await this.#starting?.catch(() => {})
    await Promise.all(this.#executions)
    await forEachIndex(this.#workers.length, async index => {
      const worker = this.#workers[index]
      if (!worker) return
      await worker.statusReporter.close()
      this.#workers[index] = undefined
      await deregister(this.#options.client, this.#nameOf(index), worker.registration, { onError: error => this.#options.onError?.(error) })
    })
    clearInterval(this.#timer)
  }

  async #register(index: number): Promise<void> {
    if (this.#stopping.signal.aborted) return
    const { client, pool } = this.#options
    const name = this.#nameOf(index)
    const sentAtMs = performance.now()
    const request = { name, pool, slots: 1, lifecycle: 'Warm', labels: {}, leaseDurationMs: this.#leaseMs } as const
    const registration = await register(client, request)
    const statusReporter: WorkerStatusReporter = new WorkerStatusReporter(
      () => ({
        runs: worker.run === undefined ? [] : [worker.run],
        idleSinceMs: worker.run === undefined ? worker.idleSinceMs : undefined,
      }),
      async status => {
        if (this.#workers[index] === worker) await patchWorkerStatus(client, name, status)
      },
      error => this.#options.onError?.(error),
    )
    const worker: HollowWorker = {
      registration,
      renewedAtMs: sentAtMs,
      isRenewing: false,
      run: undefined,
      isEnding: false,
      next: undefined,
      idleSinceMs: Date.now(),
      statusReporter,
    }
    this.#workers[index] = worker
    this.counts.registered++
    const { version } = this.#options
    await patchWorkerStatus(client, name, {
      phase: 'Ready',
      idleSince: rfc3339(Date.now()),
      host: 'hollow',
      pid: process.pid,
      version,
      runs: [],
    })
  }

  #renew(index: number, dueMs: number): void {
    const worker = this.#workers[index]
    if (!worker) return
    if (worker.isRenewing) {
      this.counts.lateRenewals++
      return
    }
    worker.isRenewing = true
    this.#due.set(index, dueMs)
    this.#sendDue()
  }

  #sendDue(): void {
    for (const [index, dueMs] of this.#due) {
      if (this.#renewing >= renewalConcurrency) return
      this.#due.delete(index)
      const worker = this.#workers[index]
      if (!worker) continue
      this.#renewing++
      void this.#sendRenewal(index, worker, dueMs).finally(() => {
        this.#renewing--
        this.#sendDue()
      })
    }
  }

  async #sendRenewal(index: number, worker: HollowWorker, dueMs: number): Promise<void> {
    const { client, renewalClient = client } = this.#options
    const sentAtMs = performance.now()
    try {
      const renewal = leaseRenewal(worker.registration.leaseUid, Date.now())
      await renewalClient.resource(leaseResource).patch(this.#nameOf(index), renewal, { type: 'merge', namespace: systemNamespace })
      worker.renewedAtMs = sentAtMs
      this.counts.renewals++
      this.renewalLatencies.add(performance.now() - dueMs)
    } catch (error) {
      if (this.#workers[index] !== worker) return
      if (isReason(error, 'NotFound', 'Conflict')) {
        this.#workers[index] = undefined
        this.counts.lost++
      } else {
        this.counts.failedRenewals++
        this.#options.onError?.(error)
      }
    } finally {
      worker.isRenewing = false
    }
  }

  async #watchRuns(): Promise<void> {
    const { client, onError } = this.#options
    await listWatch(client, runResource, {
      // Only assigned Runs that have not started: the worker's own changes to a Run need not be delivered back.
      fieldSelector: ['spec.workerName!=', ...startedPhases.map(phase => `status.phase!=${phase}`)].join(','),
      signal: this.#stopping.signal,
      onReplace: runs => {
        for (const run of runs) this.#startRun(run)
      },
      onEvent: ({ type, object }) => {
        if (type === 'ADDED' || type === 'MODIFIED') this.#startRun(object)
      },
      onError: error => onError?.(error),
      backoff: { minMs: 200, maxMs: 2_000 },
    })
  }

  #startRun(run: Run): void {
    const index = this.#indexOf(run.spec.workerName)
    const worker = index === undefined ? undefined : this.#workers[index]
    if (index === undefined || !worker || run.metadata.deletionTimestamp || this.#rejecting.has(run.metadata.uid)) return
    const key = objectKey(run)
    if (worker.run === key || worker.next?.metadata.uid === run.metadata.uid) return
    if (worker.run !== undefined) {
      if (worker.isEnding && !worker.next) worker.next = run
      else this.#reject(run, index, worker)
      return
    }
    worker.run = key
    this.counts.started++
    this.#options.onRunStarted?.(run)
    worker.statusReporter.started(run.metadata.resourceVersion, worker.registration.workerVersion)
    const work = this.#execute(run, index, worker).finally(() => {
      worker.run = undefined
      worker.isEnding = false
      const { next } = worker
      worker.next = undefined
      if (next) this.#startRun(next)
      this.#executions.delete(work)
      worker.idleSinceMs = Date.now()
      worker.statusReporter.schedule()
    })
    this.#executions.add(work)
  }

  #mayWrite(index: number, worker: HollowWorker): boolean {
    return this.#workers[index] === worker && performance.now() - worker.renewedAtMs < this.#leaseMs * writableLeaseShare
  }

  #reject(run: Run, index: number, worker: HollowWorker): void {
    const { client, onError, onRunEnded } = this.#options
    const { uid } = run.metadata
    this.counts.rejected++
    this.#rejecting.add(uid)
    const work = rejectRun({ client, run, workerName: this.#nameOf(index), slots: 1, mayWrite: () => this.#mayWrite(index, worker) })
      .catch(error => onError?.(error))
      .finally(() => {
        this.#executions.delete(work)
        this.#rejecting.delete(uid)
        onRunEnded?.(run, undefined)
      })
    this.#executions.add(work)
    void worker.statusReporter.report()
  }

  async #execute(run: Run, index: number, worker: HollowWorker): Promise<void> {
    const { client, profile, random = Math.random, onRunEnded, onError } = this.#options
    const mayWrite = () => this.#mayWrite(index, worker)
    const onEnding = () => {
      worker.isEnding = true
    }
    const reporter = new RunReporter({ client, run, workerName: this.#nameOf(index), mayWrite })
    let phase: string | undefined
    try {
      phase = await simulateRun({ reporter, profile, random, onEnding, sleep: ms => sleep(ms) })
      if (phase === 'Succeeded') this.counts.succeeded++
      else if (phase === 'Canceled') this.counts.canceled++
      else this.counts.failed++
    } catch (error) {
      this.counts.revoked++
      if (!(error instanceof RunStoppedError)) onError?.(error)
    }
    onRunEnded?.(run, phase)
  }

  #nameOf(index: number): string {
    return `${this.#options.prefix}-${index}`
  }

  #indexOf(name: string | undefined): number | undefined {
    const { prefix } = this.#options
    if (!name?.startsWith(`${prefix}-`)) return undefined
    const index = Number(name.slice(prefix.length + 1))
    return Number.isInteger(index) ? index : undefined
  }
}

/** Calls `work` for 0, 1, …, `count` - 1, with bounded concurrency. */
async function forEachIndex(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const consume = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: registrationConcurrency }, consume))
}
