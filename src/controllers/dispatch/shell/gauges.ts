import type { DispatchCore } from '../dispatch-core.ts'
import type { DispatchGauges } from './metrics.ts'

/** Computes the gauges from the core at each scrape. Only the leader reports them. */
export function dispatchGauges(core: () => DispatchCore | undefined): DispatchGauges {
  const from = <T>(of: Iterable<T> | undefined): T[] => [...(of ?? [])]
  return {
    queued: () => core()?.queuedByPool() ?? new Map(),
    active: () =>
      count(
        from(core()?.activeRuns()).map(
          ({ request, phase }) => [request.requirements.pool, phase === 'Queued' ? 'Assigned' : phase] as const,
        ),
      ),
    workers: () => count(from(core()?.workers()).map(({ worker }) => [worker.spec.pool, worker.status?.phase ?? 'Starting'] as const)),
    slots: () => slotsOf(core()?.workers() ?? []),
    pools: () => from(core()?.poolCounts()).map(([pool, { desired, starting }]) => ({ pool, desired, starting })),
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

function slotsOf(workers: ReturnType<DispatchCore['workers']>): { pool: string; used: number; free: number }[] {
  const byPool = new Map<string, { pool: string; used: number; free: number }>()
  for (const { worker, active, isSchedulable } of workers) {
    const { pool, slots } = worker.spec
    const entry = byPool.get(pool) ?? { pool, used: 0, free: 0 }
    const used = Math.min(slots, active)
    entry.used += used
    if (isSchedulable) entry.free += slots - used
    byPool.set(pool, entry)
  }
  return [...byPool.values()]
}
