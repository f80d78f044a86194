import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'

export type MetricSources = { workers(): number }

/** The registry behind `/metrics`: the process and the worker processes; controllers add theirs to it. */
export function makeRegistry(sources: MetricSources): Registry {
  const registry = new Registry()
  // The lag of the event loop is looked at ten times a second, not a hundred: an idle process is woken by little else.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 })
  new Gauge({
    name: 'oarlock_worker_processes',
    help: 'Worker processes of this process that run.',
    registers: [registry],
    collect() {
      this.set(sources.workers())
    },
  })
  return registry
}

/** State locks that were taken over from a holder that is gone (invariant 4). */
export function recoveredLocks(registry: Registry): Counter {
  const help = 'State locks taken over from Runs that had ended or whose worker was gone.'
  return new Counter({ name: 'oarlock_locks_recovered_total', help, registers: [registry] })
}
