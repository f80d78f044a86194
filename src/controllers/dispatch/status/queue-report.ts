import { type PriorityClass, priorityClasses } from '../../../api/index.ts'
import { type FifoQueue, type PreviewEntry, previewQueueOrder, type RunQueue } from '../queue/index.ts'
import type { RunRecord } from '../run-record.ts'

export type QueueReportOptions = {
  /** Restricts the report to this pool. Default: all pools. */
  readonly pool?: string | undefined
  /** Restricts the report to Runs of this namespace, and to its tenant. Default: all namespaces. */
  readonly namespace?: string | undefined
  /** Number of Runs of each pool, from the front. Default 200, at most 5,000. */
  readonly limit?: number | undefined
}

/** Response of `/queue`, described in docs/queue.md. */
export type QueueReport = {
  readonly at: string
  readonly queued: number
  readonly running: number
  readonly pools: readonly {
    readonly name: string
    readonly queued: number
    readonly running: number
    readonly maxRunning: number | null
  }[]
  readonly tenants: readonly {
    readonly name: string
    readonly weight: number
    readonly queued: number
    readonly running: number
    readonly maxRunning: number | null
    /** Decayed usage in slot seconds. */
    readonly usageSeconds: number
  }[]
  readonly runs: readonly QueuedRun[]
  /** True if not all queued Runs are listed. */
  readonly truncated: boolean
}

export type QueuedRun = {
  /** Position in the queue of its pool; null while a limit blocks the Run. */
  readonly position: number | null
  readonly namespace: string
  readonly name: string
  readonly stack: string
  readonly type: string
  readonly pool: string
  readonly tenant: string
  readonly priorityClass: PriorityClass
  readonly priority: number
  readonly waitedSeconds: number
  readonly reason: string
  readonly message: string
}

export const maxReportedRuns = 5_000

/** Counts are exact; the order of Runs is a forecast ({@link previewQueueOrder}). */
export function queueReport(
  queue: RunQueue,
  { runOf, pools }: { readonly runOf: (key: string) => RunRecord | undefined; readonly pools: Iterable<string> },
  reasons: { of(fifo: FifoQueue): { readonly reason: string; readonly message: string } },
  { pool: onlyPool, namespace: onlyNamespace, limit = 200 }: QueueReportOptions,
  nowMs: number,
): QueueReport {
  const most = Math.min(maxReportedRuns, Math.max(0, limit))
  const names = new Set(pools)
  for (const { requirements } of queue.equivalenceClasses()) names.add(requirements.pool)
  const shown = [...names].filter(name => onlyPool === undefined || name === onlyPool).sort()
  const onlyTenant = onlyNamespace === undefined ? undefined : queue.tenantOf(onlyNamespace)
  let isTruncated = false
  const lineOf = ({ entry: { request, fifo }, position }: PreviewEntry): QueuedRun => {
    const run = runOf(request.key)
    return {
      position: position ?? null,
      namespace: request.namespace,
      name: request.key.slice(request.namespace.length + 1),
      stack: run?.subject.name ?? '',
      type: run?.type ?? '',
      pool: request.requirements.pool,
      tenant: fifo.tenantQueue.account.name,
      priorityClass: priorityClasses[request.rank] ?? 'Change',
      priority: request.priority,
      waitedSeconds: Math.max(0, Math.round((nowMs - request.sinceMs) / 1_000)),
      ...reasons.of(fifo),
    }
  }
  const listed = shown.flatMap(pool => {
    const { ordered, blocked } = previewQueueOrder(queue, pool, most, nowMs)
    if (ordered.length + blocked.length < queue.queuedIn(pool)) isTruncated = true
    return [...ordered, ...blocked]
  })
  return {
    at: new Date(nowMs).toISOString(),
    queued: queue.size,
    running: queue.running,
    pools: shown.map(name => ({
      name,
      queued: queue.queuedIn(name),
      running: queue.runningIn(name),
      maxRunning: finite(queue.poolLimit(name)),
    })),
    tenants: [...queue.accounts()]
      .filter(({ name }) => onlyTenant === undefined || name === onlyTenant)
      .map(account => ({
        name: account.name,
        weight: account.weight,
        queued: account.queued,
        running: account.running,
        maxRunning: finite(account.maxRunning),
        usageSeconds: Math.round(queue.usageMs(account, nowMs) / 1_000),
      }))
      .sort((a, b) => b.queued + b.running - (a.queued + a.running) || (a.name < b.name ? -1 : 1))
      .slice(0, maxReportedRuns),
    runs: listed.filter(({ entry }) => onlyNamespace === undefined || entry.request.namespace === onlyNamespace).map(lineOf),
    truncated: isTruncated,
  }
}

const finite = (limit: number): number | null => (limit === Infinity ? null : limit)
