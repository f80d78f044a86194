import type { Dispatcher } from './dispatcher.ts'
import type { DispatchGauges } from './metrics.ts'
import { isSchedulable } from './worker-load.ts'

/** Computes the gauges from the caches of dispatch at each scrape. */
export function dispatchGauges(dispatcher: Dispatcher): DispatchGauges {
  return {
    queued: () => dispatcher.queuedByPool(),
    active: () =>
      count(dispatcher.caches.runs.byIndex('active', 'yes').map(({ spec, status }) => [spec.pool, status?.phase ?? 'Assigned'] as const)),
    workers: () => count(dispatcher.caches.workers.list().map(({ spec, status }) => [spec.pool, status?.phase ?? 'Starting'] as const)),
    slots: () => slotsOf(dispatcher),
    pools: () =>
      dispatcher.caches.pools
        .list()
        .map(({ metadata, status }) => ({ pool: metadata.name, desired: status?.desired ?? 0, starting: status?.starting ?? 0 })),
  }
}

function count(pairs: readonly (readonly [pool: string, phase: string])[]): { pool: string; phase: string; count: number }[] {
  const counts = new Map<string, { pool: string; phase: string; count: number }>()
  for (const [pool, phase] of pairs) {
    const entry = counts.get(`${pool}/${phase}`)
    if (entry) entry.count++
    else counts.set(`${pool}/${phase}`, { pool, phase, count: 1 })
  }
  return [...counts.values()]
}

function slotsOf({ caches }: Dispatcher): { pool: string; used: number; free: number }[] {
  const byPool = new Map<string, { pool: string; used: number; free: number }>()
  for (const worker of caches.workers.list()) {
    const { pool, slots } = worker.spec
    const entry = byPool.get(pool) ?? { pool, used: 0, free: 0 }
    const used = Math.min(slots, caches.runs.byIndex('activeByWorker', worker.metadata.name).length)
    entry.used += used
    if (isSchedulable(worker)) entry.free += slots - used
    byPool.set(pool, entry)
  }
  return [...byPool.values()]
}
