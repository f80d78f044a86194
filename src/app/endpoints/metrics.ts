import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { OrphanReason } from '../../stores/state/index.ts'

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

/** Journals of Pulumi in the state store. `count` reads no file. */
export function openJournalsGauge(registry: Registry, count: () => number): Gauge {
  return new Gauge({
    name: 'oarlock_state_open_journals',
    help: 'Journals of updates of Pulumi that have not completed: of active Runs, and of Runs that were cut off until the next Run of the Stack.',
    registers: [registry],
    collect() {
      this.set(count())
    },
  })
}

export function unreadableJournalsCounter(registry: Registry): Counter {
  const help = 'Requests to the state store that failed because a journal of Pulumi has an entry that this version does not understand.'
  return new Counter({ name: 'oarlock_state_journal_unreadable_total', help, registers: [registry] })
}

const orphanReasons = Object.keys({
  StaleEpoch: true,
  NotLockHolder: true,
  Incomplete: true,
  RunEnded: true,
  JournalClosed: true,
  JournalUnreadable: true,
  UpdateEnded: true,
} satisfies Record<OrphanReason, true>) as OrphanReason[]

/** Writes to the state store that did not become the current version (invariant 3). Each reason starts at 0, so that the first one is an increase. */
export function rejectedWritesCounter(registry: Registry): Counter<'reason'> {
  const help = 'Writes of states that were rejected and stored as orphaned versions, by reason.'
  const counter = new Counter({ name: 'oarlock_state_writes_rejected_total', help, labelNames: ['reason'] as const, registers: [registry] })
  for (const reason of orphanReasons) counter.inc({ reason }, 0)
  return counter
}
