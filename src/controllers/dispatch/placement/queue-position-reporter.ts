import type { Run } from '../../../api/index.ts'
import type { DispatchContext } from '../dispatch-context.ts'
import { type PreviewEntry, previewQueueOrder, type RunQueue } from '../queue/index.ts'
import type { PendingReason, PendingReasons } from './pending-reason.ts'

/** Interval of the reports, and writes in each: positions change all the time, and each write costs. */
const reportIntervalMs = 1_000
const maxWritesPerReport = 20
/** Runs that have been queued for less time get no report. */
const reportAfterMs = 2_000
/** Of each pool, this many of the first Runs and this many of the blocked Runs are reported. */
const maxReportedPerPool = 100

/** Writes the pending reason and the approximate queue position to queued Runs. */
export class QueuePositionReporter {
  readonly #context: DispatchContext
  #reportedAtMs = -Infinity

  constructor(context: DispatchContext) {
    this.#context = context
  }

  /** @returns milliseconds until the next report is due; Infinity while the queue is empty. */
  report(queue: RunQueue, reasons: () => PendingReasons, nowMs: number): number {
    if (queue.size === 0) return Infinity
    const sinceMs = nowMs - this.#reportedAtMs
    if (sinceMs < reportIntervalMs) return reportIntervalMs - sinceMs
    this.#reportedAtMs = nowMs
    const changes = this.#changes(queue, reasons(), nowMs)
    // Changed reasons are more urgent than changed positions.
    changes.sort((a, b) => Number(b.isReasonChanged) - Number(a.isReasonChanged))
    const { writes } = this.#context
    for (const { run, status } of changes.slice(0, maxWritesPerReport)) {
      if (writes.available === 0) break
      writes.begin(run, () => writes.status(run, status))
    }
    return reportIntervalMs
  }

  #changes(queue: RunQueue, reasons: PendingReasons, nowMs: number): { run: Run; status: object; isReasonChanged: boolean }[] {
    const pools = new Set([...queue.equivalenceClasses()].map(({ requirements }) => requirements.pool))
    return [...pools].flatMap(pool => {
      const { ordered, blocked } = previewQueueOrder(queue, pool, maxReportedPerPool, nowMs)
      return [...ordered, ...blocked].flatMap(previewed => {
        if (nowMs - previewed.entry.request.sinceMs < reportAfterMs) return []
        const run = this.#context.caches.runs.get(previewed.entry.request.key)
        if (!run || this.#context.writes.isInFlight(run)) return []
        const status = statusOf(previewed, reasons.of(previewed.entry.fifo))
        const isReasonChanged = run.status?.reason !== status.reason || run.status.message !== status.message
        const hasMoved = (run.status?.queuePosition ?? null) !== status.queuePosition
        return isReasonChanged || hasMoved ? [{ run, status, isReasonChanged }] : []
      })
    })
  }
}

function statusOf({ position }: PreviewEntry, { reason, message }: PendingReason) {
  return { phase: 'Queued', reason, message, queuePosition: position === undefined ? null : roundPosition(position) }
}

/** Exact up to 10, then rounded up to the next ten, so that a start does not cause a write for every Run behind it. */
export function roundPosition(position: number): number {
  return position <= 10 ? position : Math.ceil(position / 10) * 10
}
