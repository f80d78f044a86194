import type { Run } from '../../../api/index.ts'
import type { Shared } from '../dispatch-parts.ts'
import { type PreviewLine, preview, type RunQueue } from '../queue/index.ts'
import type { PendingReason, PendingReasons } from './pending-reason.ts'

/** What Runs wait for is written this often, and so many at a time: positions change all the time, and each write costs. */
const tellEveryMs = 1_000
const writesAtOnce = 20
/** A Run that waits for less long is told nothing. */
const tellAfterMs = 2_000
/** Of each pool so many of the first in line, and so many of those that a limit holds back; the others wait behind them. */
const toldOfPool = 100

/** Writes into waiting Runs why they wait and about where they stand. */
export class QueuePositionReporter {
  readonly #shared: Shared
  #toldMs = -Infinity

  constructor(shared: Shared) {
    this.#shared = shared
  }

  /** Returns after how many milliseconds there may be more to tell. */
  tell(queue: RunQueue, reasons: () => PendingReasons, nowMs: number): number {
    if (queue.size === 0) return Infinity
    const sinceMs = nowMs - this.#toldMs
    if (sinceMs < tellEveryMs) return tellEveryMs - sinceMs
    this.#toldMs = nowMs
    const news = this.#news(queue, reasons(), nowMs)
    // Reasons before positions.
    news.sort((a, b) => Number(b.isReason) - Number(a.isReason))
    const { writes } = this.#shared
    for (const { run, status } of news.slice(0, writesAtOnce)) {
      if (writes.room === 0) break
      writes.begin(run, () => writes.status(run, status))
    }
    return tellEveryMs
  }

  #news(queue: RunQueue, reasons: PendingReasons, nowMs: number): { run: Run; status: object; isReason: boolean }[] {
    const pools = new Set([...queue.shapes()].map(({ needs }) => needs.pool))
    return [...pools].flatMap(pool => {
      const { line, held } = preview(queue, pool, toldOfPool, nowMs)
      return [...line, ...held].flatMap(place => {
        if (nowMs - place.entry.request.sinceMs < tellAfterMs) return []
        const run = this.#shared.caches.runs.get(place.entry.request.key)
        if (!run || this.#shared.writes.has(run)) return []
        const status = statusOf(place, reasons.of(place.entry.lane))
        const isReason = run.status?.reason !== status.reason || run.status.message !== status.message
        const isMoved = (run.status?.queuePosition ?? null) !== status.queuePosition
        return isReason || isMoved ? [{ run, status, isReason }] : []
      })
    })
  }
}

function statusOf({ position }: PreviewLine, { reason, message }: PendingReason) {
  return { phase: 'Queued', reason, message, queuePosition: position === undefined ? null : coarse(position) }
}

/** Exact up to 10; beyond that the next ten, so that not every start is a write for everybody behind it. */
export function coarse(position: number): number {
  return position <= 10 ? position : Math.ceil(position / 10) * 10
}
