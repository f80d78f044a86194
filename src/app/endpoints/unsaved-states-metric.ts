import { hostname } from 'node:os'
import { Gauge, type Registry } from 'prom-client'
import type { Worker } from '../../api/index.ts'
import { boundedLabelValues } from '../../controllers/dispatch/index.ts'

/** Further hosts are counted as `other` (invariant 10). */
const maxHosts = 500

export type UnsavedStatesSources = {
  /** Workers that report how many their host keeps. Default: none. */
  workers?: () => readonly Pick<Worker, 'status'>[]
  /** Of this host, whose workers may have ended. Default: none. */
  local?: (() => number) | undefined
}

/** Registers the number of states that are on the host of a worker only. Workers of a host share a directory and report the same number. */
export function registerUnsavedStates(registry: Registry, { workers = () => [], local }: UnsavedStatesSources): void {
  const boundedHost = boundedLabelValues(maxHosts)
  new Gauge({
    name: 'oarlock_unsaved_states',
    help: 'States of Runs that the stores have not accepted, and that are kept on the host of the worker only, for a day.',
    labelNames: ['host'],
    registers: [registry],
    collect() {
      this.reset()
      const counts = new Map<string, number>()
      const add = (host: string, count: number) => counts.set(host, Math.max(count, counts.get(host) ?? 0))
      if (local) add(hostname(), local())
      for (const { status } of workers()) if (status?.host !== undefined && status.unsavedStates) add(status.host, status.unsavedStates)
      for (const [host, count] of counts) this.inc({ host: boundedHost(host) }, count)
    },
  })
}
