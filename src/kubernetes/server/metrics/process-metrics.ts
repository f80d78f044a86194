import { readdirSync } from 'node:fs'
import { metric } from './exposition.ts'

const startedSeconds = Date.now() / 1_000 - process.uptime()

/** Of this process, under the names that every Prometheus client uses. */
export function processMetrics(): string {
  const { user, system } = process.cpuUsage()
  const gauge = (name: string, help: string, value: number) => metric(name, 'gauge', help, [{ value }])
  let text =
    metric('process_cpu_seconds_total', 'counter', 'CPU time of this process, in seconds.', [{ value: (user + system) / 1e6 }]) +
    gauge('process_resident_memory_bytes', 'Resident memory of this process.', process.memoryUsage.rss()) +
    gauge('process_start_time_seconds', 'When this process started, in seconds since 1970.', startedSeconds)
  try {
    text += gauge('process_open_fds', 'Open file descriptors of this process.', readdirSync('/proc/self/fd').length)
  } catch {
    // Only Linux says this.
  }
  return text
}
