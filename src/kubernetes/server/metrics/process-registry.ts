import { readdirSync } from 'node:fs'
import type { Registry } from 'prom-client'
import { residentBytes } from '../../util/index.ts'

const startTimeSeconds = Date.now() / 1_000 - process.uptime()

/** The metrics of this process under the names that every Prometheus client uses; prom-client's default set costs timers and observers. */
export function processRegistry({ Counter, Gauge, Registry }: typeof import('prom-client')): Registry {
  const registry = new Registry()
  const registers = [registry]
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time of this process, in seconds.',
    registers,
    collect() {
      const { user, system } = process.cpuUsage()
      this.reset()
      this.inc((user + system) / 1e6)
    },
  })
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of this process.',
    registers,
    collect() {
      this.set(residentBytes())
    },
  })
  new Gauge({ name: 'process_start_time_seconds', help: 'Start time of this process, in seconds since 1970.', registers }).set(
    startTimeSeconds,
  )
  // Linux only.
  if (countOpenFiles() === undefined) return registry
  new Gauge({
    name: 'process_open_fds',
    help: 'Open file descriptors of this process.',
    registers,
    collect() {
      this.set(countOpenFiles() ?? 0)
    },
  })
  return registry
}

function countOpenFiles(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return undefined
  }
}
