import { setTimeout as sleep } from 'node:timers/promises'
import { type Run, runPhases, runResource, systemNamespace } from '../../../api/index.ts'
import { type Client, leaseResource, listWatch } from '../../../kubernetes/client/index.ts'
import { isReason, objectKey, rfc3339 } from '../../../kubernetes/object/index.ts'
import { leaseRenewal } from '../lease/lease-renewal.ts'
import { deregister, patchWorkerStatus, type Registration, register } from '../lease/registration.ts'
import { RunReporter } from '../run/run-reporter.ts'
import { StopError } from '../run/stop-cause.ts'
import { WorkerStatusReporter } from '../worker-status-reporter.ts'
import { Latencies } from './latencies.ts'
import type { HollowProfile } from './profile.ts'
import { simulateRun } from './simulate-run.ts'
import { TimerWheel } from './timer-wheel.ts'

export type HollowFleetOptions = {
  readonly client: Client
  /** For Leases, which a real worker renews over a connection of its own; behind other writes they would come late. Default: `client`. */
  readonly renewalClient?: Client
  /** Workers are named `<prefix>-0`, `<prefix>-1`, …; no other fleet may have the same. */
  readonly prefix: string
  readonly workers: number
  readonly pool: string
  readonly profile: HollowProfile
  /** How often each renews its Lease, which lasts five times as long. Default: 2,000. */
  readonly renewMs?: number
  readonly version?: string
  readonly random?: () => number
  /** A Run was given to one of ours. */
  onRunStarted?(run: Run): void
  /** A Run of ours has ended; undefined: it was taken from us. */
  onRunEnded?(run: Run, phase: string | undefined): void
  onError?(error: unknown): void
}

/** A worker's Lease lasts for so many renewals, as for a real one (`lease-timings.ts`: 2 s and 10 s). */
const renewalsPerLease = 5
/** Nothing is written in the last tenth of a Lease (invariant 2). */
const writableLeaseShare = 0.9
/** Registrations and ends under way at once. */
const registrationConcurrency = 64
/** Renewals under way at once; more wait here, as a server answers 429 to one user who has too many waiting there. */
const renewalConcurrency = 128
/** How often the wheel of renewals is turned. */
const tickMs = 10

const startedPhases = runPhases.filter(phase => phase !== 'Queued' && phase !== 'Assigned')

/** As much of a worker as is kept of each. */
type HollowWorker = {
  readonly registration: Registration
  /** When its last renewal that succeeded was sent, by `performance.now()`. */
  renewedAtMs: number
  isRenewing: boolean
  /** Key of the Run it works on. */
  run: string | undefined
  idleSinceMs: number
  readonly statusReporter: WorkerStatusReporter
}

/** What the fleet has done since its start. */
export type FleetCounts = {
  registered: number
  /** Workers whose Lease was taken away: somebody decided that they were dead. */
  lost: number
  renewals: number
  /** Turns for a renewal at which the one before had no answer yet. */
  lateRenewals: number
  /** Renewals without an answer that counts. */
  failedRenewals: number
  started: number
  succeeded: number
  failed: number
  canceled: number
  /** Runs that were taken from us. */
  revoked: number
}

/**
 * Many workers in one process: real Workers and Leases, real reports of Runs, no work. It differs from as many processes in three
 * points: renewals come from one wheel instead of a thread for each; one watch brings the Runs of all; it does not drain.
 */
export class HollowFleet {
  readonly #options: HollowFleetOptions
  readonly #renewMs: number
  readonly #leaseMs: number
  readonly #workers: (HollowWorker | undefined)[]
  readonly #stopping = new AbortController()
  readonly #executions = new Set<Promise<void>>()
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
  }
  /** From when a renewal was due to its answer. */
  renewalLatencies = new Latencies()
  /** Renewals that are due, by index of the worker, with since when; each worker is in it once at most. */
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

  /** Runs under way. */
  get activeRuns(): number {
    return this.#executions.size
  }

  /**
   * Registers all workers; each renews its Lease from then on and takes Runs.
   * @throws {RegisterError} of the first that could not register; call {@link stop} also then.
   */
  async start(): Promise<void> {
    const { workers } = this.#options
    const turns = new TimerWheel(workers, this.#renewMs, performance.now())
    this.#timer = setInterval(() => turns.due(performance.now(), (index, dueMs) => this.#renew(index, dueMs)), tickMs)
    this.#watching = this.#watchRuns()
    this.#starting = forEachIndex(workers, index => this.#register(index))
    await this.#starting
  }

  /** Forgets the times of renewals so far, as after the registration. */
  resetLatencies(): void {
    this.renewalLatencies = new Latencies()
  }

  /** Takes no new Run, lets those under way end, takes all Workers and Leases away. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#watching
    // Its error is the caller's already.
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
    const entry = { name, pool, slots: 1, lifecycle: 'Warm', labels: {}, leaseDurationMs: this.#leaseMs } as const
    const registration = await register(client, entry)
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
      // What a worker takes has a worker and was not begun; what it does to a Run itself is no news to it.
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
    if (index === undefined || !worker || worker.run !== undefined || run.metadata.deletionTimestamp) return
    const key = objectKey(run)
    worker.run = key
    this.counts.started++
    this.#options.onRunStarted?.(run)
    worker.statusReporter.schedule()
    const work = this.#execute(run, index, worker).finally(() => {
      worker.run = undefined
      this.#executions.delete(work)
      worker.idleSinceMs = Date.now()
      worker.statusReporter.schedule()
    })
    this.#executions.add(work)
  }

  async #execute(run: Run, index: number, worker: HollowWorker): Promise<void> {
    const { client, profile, random = Math.random, onRunEnded, onError } = this.#options
    const mayWrite = () => this.#workers[index] === worker && performance.now() - worker.renewedAtMs < this.#leaseMs * writableLeaseShare
    const reporter = new RunReporter({ client, run, workerName: this.#nameOf(index), mayWrite })
    let phase: string | undefined
    try {
      phase = await simulateRun({ reporter, profile, random, sleep: ms => sleep(ms) })
      if (phase === 'Succeeded') this.counts.succeeded++
      else if (phase === 'Canceled') this.counts.canceled++
      else this.counts.failed++
    } catch (error) {
      this.counts.revoked++
      if (!(error instanceof StopError)) onError?.(error)
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

/** Does something for 0, 1, …, `count` - 1, some at once. */
async function forEachIndex(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const take = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: registrationConcurrency }, take))
}
