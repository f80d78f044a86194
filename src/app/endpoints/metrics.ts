import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/** The registry of `/metrics`, with metrics of the process, and the number of its worker processes if it starts any. Controllers add their own. */
export function makeRegistry({ workers }: { workers?: () => number } = {}): Registry {
  const registry = new Registry()
  // The event loop lag is sampled 10 times a second instead of 100: little else wakes an idle process.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 })
  if (!workers) return registry
  new Gauge({
    name: 'oarlock_worker_processes',
    help: 'Running worker processes of this process.',
    registers: [registry],
    collect() {
      this.set(workers())
    },
  })
  return registry
}

/** State locks that were broken because their holder is proven to have abandoned them (invariant 4). */
export function brokenLocksCounter(registry: Registry): Counter {
  const help = 'State locks released by force because their Run had ended or its worker was lost.'
  return new Counter({ name: 'oarlock_state_locks_broken_total', help, registers: [registry] })
}
