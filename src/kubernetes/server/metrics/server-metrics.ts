import { labelText, metric, type Sample } from './exposition.ts'

/** What there is of one resource. */
export type Stored = { readonly group: string; readonly resource: string; readonly objects: number }

export type ServerStats = {
  objects: number
  objectBytes: number
  watchers: number
  connections: number
  writes: number
  commits: number
  failedWrites: number
  queuedWrites: number
  lastCommitMs: number
  /** Requests that are being worked on. */
  inFlight: number
  /** Requests that wait until it is their user's turn. */
  waitingRequests: number
  /** Requests refused with 429 since the start, as their user had too many. */
  rejectedRequests: number
  rssBytes: number
}

/** What the server holds and has done. */
export function serverMetrics(version: string, stored: readonly Stored[], stats: ServerStats): string {
  const gauge = (name: string, help: string, value: number) => metric(`oarlock_apiserver_${name}`, 'gauge', help, [{ value }])
  const counter = (name: string, help: string, value: number) => metric(`oarlock_apiserver_${name}_total`, 'counter', help, [{ value }])
  const nameOf = ({ group, resource }: Stored) => (group ? `${resource}.${group}` : resource)
  const objects = (labels: (of: Stored) => Record<string, string>): Sample[] =>
    stored.map(of => ({ labels: labelText(labels(of)), value: of.objects }))
  return [
    metric('kubernetes_build_info', 'gauge', 'The Kubernetes version whose API is served.', [
      { labels: labelText({ git_version: version }), value: 1 },
    ]),
    metric(
      'apiserver_storage_objects',
      'gauge',
      'Objects stored.',
      objects(of => ({ resource: nameOf(of) })),
    ),
    metric(
      'apiserver_resource_objects',
      'gauge',
      'Objects stored.',
      objects(({ group, resource }) => ({ group, resource })),
    ),
    gauge('object_bytes', 'Bytes of the objects stored.', stats.objectBytes),
    gauge('watchers', 'Open watches.', stats.watchers),
    gauge('connections', 'Open connections.', stats.connections),
    counter('writes', 'Writes acknowledged since the start.', stats.writes),
    counter('commits', 'Commits to disk since the start; one carries many writes.', stats.commits),
    counter('failed_writes', 'Writes that the disk refused since the start.', stats.failedWrites),
    gauge('queued_writes', 'Writes that wait for the disk.', stats.queuedWrites),
    gauge('last_commit_seconds', 'How long the last commit took.', stats.lastCommitMs / 1_000),
    gauge('inflight_requests', 'Requests that are being worked on.', stats.inFlight),
    gauge('waiting_requests', "Requests that wait until it is their user's turn.", stats.waitingRequests),
    counter('rejected_requests', 'Requests refused with 429 since the start, as their user had too many.', stats.rejectedRequests),
  ].join('')
}
