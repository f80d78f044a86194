import type { ReportedPoolDemand, WorkerPool } from '../../../api/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import type { DispatchAction } from '../dispatch-action.ts'
import type { Now, WriteOutcome } from '../dispatch-event.ts'
import { type ObjectVersion, versionOf } from '../object-version.ts'
import type { PoolDemand } from '../pool/index.ts'

/** A change of what starts workers is written at most so often; */
const startableIntervalMs = 1_000
/** one of the count alone, which people read, so often. */
const queuedIntervalMs = 3_000
/** A report that does not change is written again, so that it does not expire (`reported-demand.ts`). */
const renewalMs = 60_000

export type DemandReportsInput = {
  readonly pools: ReadonlyMap<string, WorkerPool>
  readonly demand: ReadonlyMap<string, PoolDemand>
  /** True while a report of the pool is being written. */
  readonly isPending: (pool: ObjectVersion) => boolean
  readonly now: Now
}

type Written = { readonly queued: number; readonly startable: number; readonly atMs: number; readonly isKnown: boolean }

/** Reports how many Runs wait for each pool to the dispatcher that sizes it, which does not see them. A pool without queued Runs has no report. */
export class DemandReports {
  /** By pool: the last report. Not known: it was not written, or this dispatcher has not written any. */
  readonly #written = new Map<string, Written>()
  /** Pools whose last report was not answered. */
  readonly #unanswered = new Set<string>()

  /** @returns the actions, and the milliseconds until the next report is due; Infinity if none is. */
  decide({ pools, demand, isPending, now }: DemandReportsInput): {
    readonly actions: readonly DispatchAction[]
    readonly requeueAfterMs: number
  } {
    const { monotonicMs, wallMs } = now
    const actions: DispatchAction[] = []
    let requeueAfterMs = Number.POSITIVE_INFINITY
    for (const [name, pool] of pools) {
      const object = versionOf('WorkerPool', pool)
      if (isPending(object)) continue
      const { queued = 0, startable = 0 } = demand.get(name) ?? {}
      const inMs = dueInMs({ queued, startable }, this.#written.get(name), monotonicMs)
      if (inMs > 0) {
        requeueAfterMs = Math.min(requeueAfterMs, inMs)
        continue
      }
      this.#written.set(name, { queued, startable, atMs: monotonicMs, isKnown: true })
      const report: ReportedPoolDemand | null = queued === 0 ? null : { queued, startable, reportedAt: rfc3339(wallMs) }
      actions.push({ kind: 'ReportDemand', object, report })
    }
    return { actions, requeueAfterMs }
  }

  writeSettled(pool: string, outcome: WriteOutcome): void {
    const written = this.#written.get(pool)
    if (written && outcome !== 'Written') this.#written.set(pool, { ...written, isKnown: false })
    if (outcome === 'Failed') this.#unanswered.add(pool)
    else this.#unanswered.delete(pool)
  }

  /** The last report of the pool was not answered: as long as that is so, no worker is started for this dispatcher. */
  isUnanswered(pool: string): boolean {
    return this.#unanswered.has(pool)
  }

  poolDeleted(pool: string): void {
    this.#written.delete(pool)
    this.#unanswered.delete(pool)
  }
}

function dueInMs(demand: { readonly queued: number; readonly startable: number }, written: Written | undefined, nowMs: number): number {
  if (!written) return 0
  const { queued, startable, atMs, isKnown } = written
  const afterMs = (intervalMs: number) => Math.max(0, atMs + intervalMs - nowMs)
  if (!isKnown || startable !== demand.startable || (queued === 0) !== (demand.queued === 0)) return afterMs(startableIntervalMs)
  if (queued !== demand.queued) return afterMs(queuedIntervalMs)
  return demand.queued === 0 ? Number.POSITIVE_INFINITY : afterMs(renewalMs)
}
