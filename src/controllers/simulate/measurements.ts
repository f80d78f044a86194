import type { RunCause, StackLoad } from './stack-load.ts'
import type { WorkerFleet } from './worker-fleet.ts'

/** Wait of Runs from their arrival in the queue until their assignment to a worker, in milliseconds. */
export type WaitSummary = {
  readonly count: number
  readonly meanMs: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** Result for one pool size, within the measured hours. */
export type SimulationResult = {
  /** The pool's maximum. */
  readonly max: number
  readonly hours: number
  readonly wait: { readonly all: WaitSummary; readonly Change: WaitSummary; readonly DriftCheck: WaitSummary }
  /** Runs that ended, and how many of them failed. */
  readonly runEnded: number
  readonly failed: number
  /** Runs still queued at the end; their wait until then is counted. */
  readonly queuedAtEnd: number
  /** Share of the slot time of all workers, including starting ones, in which the slot had a Run. 0 to 1. */
  readonly utilization: number
  readonly workers: { readonly mean: number; readonly peak: number; readonly runStarted: number }
  readonly workerHours: number
  /** When the last Run ended, in milliseconds from the start. */
  readonly lastEndMs: number
  /** The tenant with the longest mean wait. */
  readonly slowestTenant: { readonly name: string; readonly meanMs: number }
}

/** Collects the measurements of one simulation. Events before `fromMs`, the end of the warm-up, are not counted. */
export class Measurements {
  readonly #fromMs: number
  readonly #waits: Record<RunCause, number[]> = { DriftCheck: [], Change: [] }
  readonly #tenantWaits: Float64Array
  readonly #tenantRuns: Float64Array
  #arrivals = 0
  #ended = 0
  #failed = 0
  #queuedAtEnd = 0
  #lastEndMs = 0
  #lastMs = 0
  #provisionedMs = 0
  #busyMs = 0
  #running = 0
  #peak = 0

  constructor(fromMs: number, tenants: number) {
    this.#fromMs = fromMs
    this.#tenantWaits = new Float64Array(tenants)
    this.#tenantRuns = new Float64Array(tenants)
  }

  /** Accounts for the time since the previous call, in which the workers did not change. */
  advanceTo(nowMs: number, { provisioned }: WorkerFleet): void {
    const elapsedMs = nowMs - Math.max(this.#lastMs, this.#fromMs)
    this.#lastMs = nowMs
    if (elapsedMs <= 0) return
    this.#provisionedMs += provisioned * elapsedMs
    this.#busyMs += this.#running * elapsedMs
    if (provisioned > this.#peak) this.#peak = provisioned
  }

  /** Records the arrival of a Run. Returns its sequence number. */
  runArrived(): number {
    return ++this.#arrivals
  }

  runStarted(stack: StackLoad, nowMs: number): void {
    this.#running++
    this.#recordWait(stack, nowMs)
  }

  runEnded(isFailed: boolean, nowMs: number): void {
    this.#running--
    this.#lastEndMs = nowMs
    if (nowMs < this.#fromMs) return
    this.#ended++
    if (isFailed) this.#failed++
  }

  runStillQueued(stack: StackLoad, nowMs: number): void {
    this.#queuedAtEnd++
    this.#recordWait(stack, nowMs)
  }

  result(workers: WorkerFleet, endMs: number): SimulationResult {
    const { DriftCheck, Change } = this.#waits
    let slowest = 0
    const meanOf = (tenant: number) => (this.#tenantWaits[tenant] ?? 0) / Math.max(1, this.#tenantRuns[tenant] ?? 0)
    for (let tenant = 1; tenant < this.#tenantWaits.length; tenant++) if (meanOf(tenant) > meanOf(slowest)) slowest = tenant
    const hourMs = 3_600_000
    const hours = (endMs - this.#fromMs) / hourMs
    return {
      max: workers.max,
      hours,
      wait: { all: summarizeWaits([...DriftCheck, ...Change]), Change: summarizeWaits(Change), DriftCheck: summarizeWaits(DriftCheck) },
      runEnded: this.#ended,
      failed: this.#failed,
      queuedAtEnd: this.#queuedAtEnd,
      utilization: this.#provisionedMs === 0 ? 0 : this.#busyMs / (this.#provisionedMs * workers.slots),
      workers: { mean: this.#provisionedMs / hourMs / hours, peak: this.#peak, runStarted: workers.started },
      workerHours: this.#provisionedMs / hourMs,
      lastEndMs: this.#lastEndMs,
      slowestTenant: { name: `tenant-${slowest}`, meanMs: meanOf(slowest) },
    }
  }

  #recordWait({ arrivedMs, cause, tenant }: StackLoad, nowMs: number): void {
    if (nowMs < this.#fromMs) return
    const waitedMs = nowMs - arrivedMs
    this.#waits[cause].push(waitedMs)
    this.#tenantWaits[tenant]! += waitedMs
    this.#tenantRuns[tenant]! += 1
  }
}

function summarizeWaits(waits: readonly number[]): WaitSummary {
  const sorted = Float64Array.from(waits).sort()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  const sum = sorted.reduce((total, wait) => total + wait, 0)
  return { count: sorted.length, meanMs: sorted.length === 0 ? 0 : sum / sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) }
}
