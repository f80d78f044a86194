import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { ServerStats } from '../server/index.ts'

export type MetricSources = { server(): ServerStats; workers(): number }

/** The registry behind `/metrics`: the process, the API server and the worker processes; controllers add theirs to it. */
export function makeRegistry(sources: MetricSources): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read())
      },
    })
  const stat = (name: string, help: string, read: (stats: ServerStats) => number) =>
    gauge(`oarlock_apiserver_${name}`, help, () => read(sources.server()))
  stat('objects', 'Objects stored.', stats => stats.objects)
  stat('object_bytes', 'Bytes of the objects stored.', stats => stats.objectBytes)
  stat('watchers', 'Open watches.', stats => stats.watchers)
  stat('connections', 'Open connections.', stats => stats.connections)
  stat('writes_total', 'Writes acknowledged since the start.', stats => stats.writes)
  stat('commits_total', 'Commits to disk since the start; one carries many writes.', stats => stats.commits)
  stat('failed_writes_total', 'Writes that the disk refused since the start.', stats => stats.failedWrites)
  stat('queued_writes', 'Writes that wait for the disk.', stats => stats.queuedWrites)
  stat('last_commit_seconds', 'How long the last commit took.', stats => stats.lastCommitMs / 1_000)
  stat('inflight_requests', 'Requests that are being worked on.', stats => stats.inFlight)
  stat('waiting_requests', "Requests that wait until it is their user's turn.", stats => stats.waitingRequests)
  stat('rejected_requests_total', 'Requests refused with 429 since the start, as their user had too many.', stats => stats.rejectedRequests)
  gauge('oarlock_worker_processes', 'Worker processes of this process that run.', sources.workers)
  return registry
}
