import type { Run } from '../../../api/index.ts'
import type { DispatchContext } from '../dispatch-context.ts'
import { type PreviewEntry, preview, type RunQueue } from '../queue/index.ts'
import type { PendingReason, PendingReasons } from './pending-reason.ts'

/** What Runs wait for is written this often, and so many at a time: positions change all the time, and each write costs. */
const reportIntervalMs = 1_000
const maxWritesPerReport = 20
/** A Run that waits for less long is told nothing. */
const reportAfterMs = 2_000
/** Of each pool so many of the first in line, and so many of those that a limit holds back; the others wait behind them. */
const maxReportedPerPool = 100

/** Writes into waiting Runs why they wait and about where they stand. */
export class QueuePositionReporter {
  readonly #context: DispatchContext
  #reportedAtMs = -Infinity

  constructor(context: DispatchContext) {
    this.#context = context
  }

  /** Returns after how many milliseconds there may be more to tell. */
  report(queue: RunQueue, reasons: () => PendingReasons, nowMs: number): number {
    if (queue.size === 0) return Infinity
    const sinceMs = nowMs - this.#reportedAtMs
    if (sinceMs < reportIntervalMs) return reportIntervalMs - sinceMs
    this.#reportedAtMs = nowMs
    const changes = this.#changes(queue, reasons(), nowMs)
    // Reasons before positions.
    changes.sort((a, b) => Number(b.isReason) - Number(a.isReason))
    const { writes } = this.#context
    for (const { run, status } of changes.slice(0, maxWritesPerReport)) {
      if (writes.availableWrites === 0) break
      writes.begin(run, () => writes.status(run, status))
    }
    return reportIntervalMs
  }

  #changes(queue: RunQueue, reasons: PendingReasons, nowMs: number): { run: Run; status: object; isReason: boolean }[] {
    const pools = new Set([...queue.equivalenceClasses()].map(({ requirements }) => requirements.pool))
    return [...pools].flatMap(pool => {
      const { ordered, blocked } = preview(queue, pool, maxReportedPerPool, nowMs)
      return [...ordered, ...blocked].flatMap(previewed => {
        if (nowMs - previewed.entry.request.sinceMs < reportAfterMs) return []
        const run = this.#context.caches.runs.get(previewed.entry.request.key)
        if (!run || this.#context.writes.has(run)) return []
        const status = statusOf(previewed, reasons.of(previewed.entry.fifo))
        const isReason = run.status?.reason !== status.reason || run.status.message !== status.message
        const isMoved = (run.status?.queuePosition ?? null) !== status.queuePosition
        return isReason || isMoved ? [{ run, status, isReason }] : []
      })
    })
  }
}

function statusOf({ position }: PreviewEntry, { reason, message }: PendingReason) {
  return { phase: 'Queued', reason, message, queuePosition: position === undefined ? null : roundPosition(position) }
}

/** Exact up to 10; beyond that the next ten, so that not every start is a write for everybody behind it. */
export function roundPosition(position: number): number {
  return position <= 10 ? position : Math.ceil(position / 10) * 10
}
