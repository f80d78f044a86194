import type { DispatchAction, RunStatusPatch } from '../dispatch-action.ts'
import { type PreviewEntry, previewQueueOrder, type RunQueue } from '../queue/index.ts'
import type { RunRecord } from '../run-record.ts'
import type { PendingReason, PendingReasons } from './pending-reason.ts'

/** Interval of the reports, and writes in each: positions change all the time, and each write costs. */
const reportIntervalMs = 1_000
const maxWritesPerReport = 20
/** Runs that have been queued for less time get no report: one that is placed immediately costs no write but its assignment. */
const reportAfterMs = 2_000
/** Of each Run at most one report is written in this time: if its reason has changed, and if only its message, which has counts, or its position has. */
const reasonAgainAfterMs = 5_000
const detailsAgainAfterMs = 30_000
/** A Run that has moved up among the reported ones gets no report if it is placed in this time: in a queue that moves fast, most would be outdated. */
const movedUpAfterMs = 30_000
/** Of each pool, this many of the first Runs and this many of the blocked Runs are reported. */
const maxReportedPerPool = 100

export type QueuePositionsInput = {
  readonly queue: RunQueue
  readonly reasons: () => PendingReasons
  readonly runOf: (key: string) => RunRecord | undefined
  /** True while a write of the Run is pending: nothing is decided for it. */
  readonly isPending: (run: RunRecord) => boolean
  /** Maximum number of reports now. */
  readonly limit: number
  readonly nowMs: number
}

/** Reports the pending reason and the approximate queue position of queued Runs. */
export class QueuePositions {
  #reportedAtMs = Number.NEGATIVE_INFINITY
  /** By key of the Runs that are reported: when their first report is due. */
  #dueMs: ReadonlyMap<string, number> = new Map()

  /** @returns the actions, and the milliseconds until the next report is due; Infinity while the queue is empty. */
  decide(input: QueuePositionsInput): { readonly actions: readonly DispatchAction[]; readonly requeueAfterMs: number } {
    const { queue, limit, nowMs } = input
    if (queue.size === 0) return { actions: [], requeueAfterMs: Number.POSITIVE_INFINITY }
    const sinceMs = nowMs - this.#reportedAtMs
    if (sinceMs >= 0 && sinceMs < reportIntervalMs) return { actions: [], requeueAfterMs: reportIntervalMs - sinceMs }
    this.#reportedAtMs = nowMs
    const changes = this.#changesOf(input)
    // Changed reasons are more urgent than changed positions.
    changes.sort((a, b) => Number(b.isReasonChanged) - Number(a.isReasonChanged))
    const actions = changes.slice(0, Math.min(maxWritesPerReport, limit)).map(({ run, status }): DispatchAction => {
      run.reportedAtMs = nowMs
      return { kind: 'PatchRunStatus', object: run.object, status }
    })
    return { actions, requeueAfterMs: reportIntervalMs }
  }

  #changesOf({ queue, reasons, runOf, isPending, nowMs }: QueuePositionsInput) {
    const pools = new Set([...queue.equivalenceClasses()].map(({ requirements }) => requirements.pool))
    const pendingReasons = reasons()
    const dueMs = new Map<string, number>()
    const changes = [...pools].flatMap(pool => {
      const { ordered, blocked } = previewQueueOrder(queue, pool, maxReportedPerPool, nowMs)
      return [...ordered, ...blocked].flatMap(previewed => {
        const { request, fifo } = previewed.entry
        const due = this.#dueMs.get(request.key) ?? firstReportMs(request.sinceMs, nowMs)
        dueMs.set(request.key, due)
        const run = runOf(request.key)
        if (!run || nowMs < due || isPending(run)) return []
        const status = statusOf(previewed, pendingReasons.of(fifo))
        const isReasonChanged = run.reason !== status.reason
        const areDetailsChanged = run.message !== status.message || (run.queuePosition ?? null) !== status.queuePosition
        if (nowMs - run.reportedAtMs < (isReasonChanged ? reasonAgainAfterMs : detailsAgainAfterMs)) return []
        return isReasonChanged || areDetailsChanged ? [{ run, status, isReasonChanged }] : []
      })
    })
    this.#dueMs = dueMs
    return changes
  }
}

/** Of a Run that has just been queued, or of one that has moved up. */
const firstReportMs = (sinceMs: number, nowMs: number): number =>
  nowMs - sinceMs <= reportAfterMs ? sinceMs + reportAfterMs : nowMs + movedUpAfterMs

function statusOf({ position }: PreviewEntry, { reason, message }: PendingReason): RunStatusPatch & { queuePosition: number | null } {
  return { phase: 'Queued', reason, message, queuePosition: position === undefined ? null : roundPosition(position) }
}

/** Exact up to 10, then rounded up to the next ten, so that a start does not cause a write for every Run behind it. */
function roundPosition(position: number): number {
  return position <= 10 ? position : Math.ceil(position / 10) * 10
}
