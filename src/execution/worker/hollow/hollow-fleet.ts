import { setTimeout as sleep } from 'node:timers/promises'
import { type Run, runPhases, runResource, systemNamespace } from '../../../api/index.ts'
import { type Client, leaseResource, listWatch } from '../../../kubernetes/client/index.ts'
import { isReason, objectKey, rfc3339 } from '../../../kubernetes/object/index.ts'
import { leaseRenewal } from '../lease/lease-renewal.ts'
import { deregister, type Registration, register, say } from '../lease/registration.ts'
import { RunReporter } from '../run/run-reporter.ts'
import { StopError } from '../run/stop-cause.ts'
import { WorkerStatusReporter } from '../worker-status-reporter.ts'
import { Latencies } from './latencies.ts'
import type { HollowProfile } from './profile.ts'
import { TimerWheel } from './timer-wheel.ts'
import { workHollow } from './simulate-run.ts'

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
  onRun?(run: Run): void
  /** A Run of ours has ended; undefined: it was taken from us. */
  onEnd?(run: Run, phase: string | undefined): void
  onError?(error: unknown): void
}

/** A worker's Lease lasts for so many renewals, as for a real one (`lease-timings.ts`: 2 s and 10 s). */
const renewalsPerLease = 5
/** Nothing is written in the last tenth of a Lease (invariant 2). */
const mayWriteShare = 0.9
/** Registrations and ends under way at once. */
const atOnce = 64
/** Renewals under way at once; more wait here, as a server answers 429 to one user who has too many waiting there. */
const renewalsAtOnce = 128
/** How often the wheel of renewals is turned. */
const turnEveryMs = 10

const begun = runPhases.filter(phase => phase !== 'Queued' && phase !== 'Assigned')

/** As much of a worker as is kept of each. */
type HollowWorker = {
  readonly registration: Registration
  /** When its last renewal that succeeded was sent, by `performance.now()`. */
  renewedAtMs: number
  isRenewing: boolean
  /** Key of the Run it works on. */
  run: string | undefined
  idleSinceMs: number
  readonly voice: WorkerStatusReporter
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
  begun: number
  succeeded: number
  failed: number
  canceled: number
  /** Runs that were taken from us. */
  taken: number
}

/**
 * Many workers in one process: real Workers and Leases, real reports of Runs, no work. It differs from as many processes in three
 * points: renewals come from one wheel instead of a thread for each; one watch brings the Runs of all; it does not drain.
 */
export class HollowFleet {
  readonly #options: HollowFleetOptions
  readonly #renewMs: number
  readonly #leaseMs: number
  readonly #hands: (HollowWorker | undefined)[]
  readonly #stop = new AbortController()
  readonly #work = new Set<Promise<void>>()
  readonly counts: FleetCounts = {
    registered: 0,
    lost: 0,
    renewals: 0,
    lateRenewals: 0,
    failedRenewals: 0,
    begun: 0,
    succeeded: 0,
    failed: 0,
    canceled: 0,
    taken: 0,
  }
  /** From when a renewal was due to its answer. */
  renewalTimes = new Latencies()
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
    this.#hands = new Array(options.workers).fill(undefined)
  }

  /** Runs under way. */
  get working(): number {
    return this.#work.size
  }

  /**
   * Registers all workers; each renews its Lease from then on and takes Runs.
   * @throws {RegisterError} of the first that could not register; call {@link end} also then.
   */
  async start(): Promise<void> {
    const { workers } = this.#options
    const turns = new TimerWheel(workers, this.#renewMs, performance.now())
    this.#timer = setInterval(() => turns.due(performance.now(), (index, dueMs) => this.#renew(index, dueMs)), turnEveryMs)
    this.#watching = this.#watchRuns()
    this.#starting = eachOf(workers, index => this.#register(index))
    await this.#starting
  }

  /** Forgets the times of renewals so far, as after the registration. */
  resetTimes(): void {
    this.renewalTimes = new Latencies()
  }

  /** Takes no new Run, lets those under way end, takes all Workers and Leases away. */
  async end(): Promise<void> {
    this.#stop.abort()
    await this.#watching
    // Its error is the caller's already.
    await this.#starting?.catch(() => {})
    await Promise.all(this.#work)
    await eachOf(this.#hands.length, async index => {
      const hand = this.#hands[index]
      if (!hand) return
      await hand.voice.end()
      this.#hands[index] = undefined
      await deregister(this.#options.client, this.#nameOf(index), hand.registration, { onError: error => this.#options.onError?.(error) })
    })
    clearInterval(this.#timer)
  }

  async #register(index: number): Promise<void> {
    if (this.#stop.signal.aborted) return
    const { client, pool } = this.#options
    const name = this.#nameOf(index)
    const sentAtMs = performance.now()
    const entry = { name, pool, slots: 1, lifecycle: 'Warm', labels: {}, leaseDurationMs: this.#leaseMs } as const
    const registration = await register(client, entry)
    const voice: WorkerStatusReporter = new WorkerStatusReporter(
      () => ({ runs: hand.run === undefined ? [] : [hand.run], idleSinceMs: hand.run === undefined ? hand.idleSinceMs : undefined }),
      async status => {
        if (this.#hands[index] === hand) await say(client, name, status)
      },
      error => this.#options.onError?.(error),
    )
    const hand: HollowWorker = { registration, renewedAtMs: sentAtMs, isRenewing: false, run: undefined, idleSinceMs: Date.now(), voice }
    this.#hands[index] = hand
    this.counts.registered++
    const { version } = this.#options
    await say(client, name, { phase: 'Ready', idleSince: rfc3339(Date.now()), host: 'hollow', pid: process.pid, version, runs: [] })
  }

  #renew(index: number, dueMs: number): void {
    const hand = this.#hands[index]
    if (!hand) return
    if (hand.isRenewing) {
      this.counts.lateRenewals++
      return
    }
    hand.isRenewing = true
    this.#due.set(index, dueMs)
    this.#sendDue()
  }

  #sendDue(): void {
    for (const [index, dueMs] of this.#due) {
      if (this.#renewing >= renewalsAtOnce) return
      this.#due.delete(index)
      const hand = this.#hands[index]
      if (!hand) continue
      this.#renewing++
      void this.#sendRenewal(index, hand, dueMs).finally(() => {
        this.#renewing--
        this.#sendDue()
      })
    }
  }

  async #sendRenewal(index: number, hand: HollowWorker, dueMs: number): Promise<void> {
    const { client, renewalClient = client } = this.#options
    const sentAtMs = performance.now()
    try {
      const renewal = leaseRenewal(hand.registration.leaseUid, Date.now())
      await renewalClient.resource(leaseResource).patch(this.#nameOf(index), renewal, { type: 'merge', namespace: systemNamespace })
      hand.renewedAtMs = sentAtMs
      this.counts.renewals++
      this.renewalTimes.add(performance.now() - dueMs)
    } catch (error) {
      if (this.#hands[index] !== hand) return
      if (isReason(error, 'NotFound', 'Conflict')) {
        this.#hands[index] = undefined
        this.counts.lost++
      } else {
        this.counts.failedRenewals++
        this.#options.onError?.(error)
      }
    } finally {
      hand.isRenewing = false
    }
  }

  async #watchRuns(): Promise<void> {
    const { client, onError } = this.#options
    await listWatch(client, runResource, {
      // What a worker takes has a worker and was not begun; what it does to a Run itself is no news to it.
      fieldSelector: ['spec.workerName!=', ...begun.map(phase => `status.phase!=${phase}`)].join(','),
      signal: this.#stop.signal,
      onReplace: runs => {
        for (const run of runs) this.#begin(run)
      },
      onEvent: ({ type, object }) => {
        if (type === 'ADDED' || type === 'MODIFIED') this.#begin(object)
      },
      onError: error => onError?.(error),
      backoff: { minMs: 200, maxMs: 2_000 },
    })
  }

  #begin(run: Run): void {
    const index = this.#indexOf(run.spec.workerName)
    const hand = index === undefined ? undefined : this.#hands[index]
    if (index === undefined || !hand || hand.run !== undefined || run.metadata.deletionTimestamp) return
    const key = objectKey(run)
    hand.run = key
    this.counts.begun++
    this.#options.onRun?.(run)
    hand.voice.changed()
    const work = this.#do(run, index, hand).finally(() => {
      hand.run = undefined
      this.#work.delete(work)
      hand.idleSinceMs = Date.now()
      hand.voice.changed()
    })
    this.#work.add(work)
  }

  async #do(run: Run, index: number, hand: HollowWorker): Promise<void> {
    const { client, profile, random = Math.random, onEnd, onError } = this.#options
    const mayWrite = () => this.#hands[index] === hand && performance.now() - hand.renewedAtMs < this.#leaseMs * mayWriteShare
    const reporter = new RunReporter({ client, run, workerName: this.#nameOf(index), mayWrite })
    let phase: string | undefined
    try {
      phase = await workHollow({ reporter, profile, random, sleep: ms => sleep(ms) })
      if (phase === 'Succeeded') this.counts.succeeded++
      else if (phase === 'Canceled') this.counts.canceled++
      else this.counts.failed++
    } catch (error) {
      this.counts.taken++
      if (!(error instanceof StopError)) onError?.(error)
    }
    onEnd?.(run, phase)
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
async function eachOf(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const take = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, take))
}
