import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { RunPhase, RunType } from '../api/index.ts'

/** What dispatch tells Prometheus; every number comes from the queue itself, never from a sample of it. */
export type DispatchMetrics = {
  runEnded(type: RunType, phase: RunPhase): void
  runAssigned(queuedSeconds: number): void
}

export type DispatchGauges = {
  /** Runs that wait, by pool. */
  queued(): ReadonlyMap<string, number>
  /** Workers by pool and phase. */
  workers(): readonly { readonly pool: string; readonly phase: string; readonly count: number }[]
}

export const noMetrics: DispatchMetrics = { runEnded: () => undefined, runAssigned: () => undefined }

/** Registers the metrics of dispatch on `registry`; the gauges are read when somebody scrapes. */
export function metricsOn(registry: Registry, gauges: DispatchGauges): DispatchMetrics {
  const registers = [registry]
  const queued: Gauge<'pool'> = new Gauge({
    name: 'oarlock_runs_queued',
    help: 'Runs that wait for a worker.',
    labelNames: ['pool'],
    registers,
    collect() {
      queued.reset()
      for (const [pool, count] of gauges.queued()) queued.set({ pool }, count)
    },
  })
  const workers: Gauge<'pool' | 'phase'> = new Gauge({
    name: 'oarlock_workers',
    help: 'Registered workers.',
    labelNames: ['pool', 'phase'],
    registers,
    collect() {
      workers.reset()
      for (const { pool, phase, count } of gauges.workers()) workers.set({ pool, phase }, count)
    },
  })
  const total = new Counter({ name: 'oarlock_runs_total', help: 'Runs that ended.', labelNames: ['type', 'phase'], registers })
  const seconds = new Histogram({
    name: 'oarlock_run_queue_seconds',
    help: 'From the creation of a Run until it had a worker.',
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200],
    registers,
  })
  return {
    runEnded: (type, phase) => total.inc({ type, phase }),
    runAssigned: queuedSeconds => seconds.observe(queuedSeconds),
  }
}
