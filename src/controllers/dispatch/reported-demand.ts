import type { ReportedPoolDemand, WorkerPool } from '../../api/index.ts'

/** A report that is not renewed for so long is of a partition that no longer exists: its Runs start no more workers. Three renewals (`status/demand-reports.ts`). */
export const demandExpiryMs = 180_000

/** How long a report may be older than what workers show: it is written up to 1 s after a change, and read a moment later. */
const settleMs = 5_000

type Report = ReportedPoolDemand & { readonly partition: string; readonly receivedMs: number }

/** The Runs of other partitions that wait for workers of a pool. */
export type DemandElsewhere = {
  readonly queued: number
  readonly startable: number
  /** `startable` by partition. */
  readonly byPartition: ReadonlyMap<string, number>
}

/**
 * What other partitions report about their Runs (`status.demand` of WorkerPools), for the dispatcher that sizes the pools of all. It decides only how many workers are
 * started: whether a worker is busy is read from its Worker, so that a report that is late, wrong or missing never drains a busy one (invariant 8).
 *
 * A Run that a worker has just got is in the last report still, and the worker is busy already: counted twice, each such Run would start another worker.
 * So what workers got since a report is subtracted from it, until it is renewed, or for {@link settleMs}.
 *
 * Times are of the monotonic clock: a report expires by when it was received, because the clocks of partitions may differ.
 */
export class ReportedDemand {
  /** By pool and partition. */
  readonly #reports = new Map<string, Map<string, Report>>()
  /** By pool: how many Runs of other partitions its workers got, and when. */
  readonly #accepted = new Map<string, { readonly atMs: number; count: number }[]>()

  /** Takes a version of the pool. Returns true if a report has changed. */
  poolChanged({ metadata: { name }, status }: WorkerPool, nowMs: number): boolean {
    const known = this.#reports.get(name)
    const reports = new Map<string, Report>()
    let hasChanged = false
    for (const [partition, demand] of Object.entries(status?.demand ?? {})) {
      const before = known?.get(partition)
      const isSame = before?.queued === demand.queued && before.startable === demand.startable
      if (!isSame) hasChanged = true
      reports.set(partition, isSame && before.reportedAt === demand.reportedAt ? before : { ...demand, partition, receivedMs: nowMs })
    }
    if (reports.size > 0) this.#reports.set(name, reports)
    else this.#reports.delete(name)
    return hasChanged || reports.size !== (known?.size ?? 0)
  }

  poolDeleted(name: string): void {
    this.#reports.delete(name)
    this.#accepted.delete(name)
  }

  /** A worker of the pool reports `count` Runs of other partitions that it did not have before. */
  accepted(pool: string, count: number, nowMs: number): void {
    if (count === 0 || !this.#reports.has(pool)) return
    const recent = (this.#accepted.get(pool) ?? []).filter(({ atMs }) => atMs > nowMs - settleMs)
    const last = recent.at(-1)
    if (last?.atMs === nowMs) last.count += count
    else recent.push({ atMs: nowMs, count })
    this.#accepted.set(pool, recent)
  }

  /** The sum of the reports that have not expired. */
  of(pool: string, nowMs: number): DemandElsewhere {
    let [queued, startable, subtracted] = [0, 0, 0]
    const byPartition = new Map<string, number>()
    // The newest first: what is newer than it is newer than the others too.
    const reports = [...this.#live(pool, nowMs)].sort((a, b) => b.receivedMs - a.receivedMs)
    for (const report of reports) {
      const acceptedSince = this.#acceptedSince(pool, report.receivedMs, nowMs) - subtracted
      const known = Math.min(report.startable, Math.max(0, acceptedSince))
      subtracted += known
      queued += report.queued
      startable += report.startable - known
      byPartition.set(report.partition, report.startable - known)
    }
    return { queued, startable, byPartition }
  }

  /** Partitions whose report has expired and is to be removed. */
  expired(pool: string, nowMs: number): readonly string[] {
    return [...(this.#reports.get(pool) ?? [])].flatMap(([name, report]) => (isLive(report, nowMs) ? [] : [name]))
  }

  /** When {@link of} changes although nothing is observed; Infinity if it does not. */
  nextMs(nowMs: number): number {
    const expiries = [...this.#reports.keys()].flatMap(pool => this.#live(pool, nowMs).map(({ receivedMs }) => receivedMs + demandExpiryMs))
    const settled = [...this.#accepted.values()].flat().flatMap(({ atMs }) => (atMs + settleMs > nowMs ? [atMs + settleMs] : []))
    return Math.min(...expiries, ...settled)
  }

  #live(pool: string, nowMs: number): readonly Report[] {
    return [...(this.#reports.get(pool)?.values() ?? [])].filter(report => isLive(report, nowMs))
  }

  #acceptedSince(pool: string, sinceMs: number, nowMs: number): number {
    const fromMs = Math.max(sinceMs, nowMs - settleMs + 1)
    return (this.#accepted.get(pool) ?? []).reduce((sum, { atMs, count }) => (atMs >= fromMs ? sum + count : sum), 0)
  }
}

const isLive = ({ receivedMs }: Report, nowMs: number) => nowMs < receivedMs + demandExpiryMs
