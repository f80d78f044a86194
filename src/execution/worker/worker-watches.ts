import { setTimeout as delay } from 'node:timers/promises'
import { type Run, runResource, type Worker, workerResource } from '../../api/index.ts'
import { type Client, listWatch } from '../../kubernetes/client/index.ts'

export type WorkerWatchOptions = { client: Client; name: string; signal: AbortSignal; onError(error: unknown): void }

/** The worker's object is watched only after this delay: the first Run may arrive at any moment, and comes first. */
const watchWorkerAfterMs = 1_000

/** Watches the Runs that are assigned to a worker, until `signal` is aborted. A reassigned Run is delivered as removed. */
export async function watchAssignedRuns(
  options: WorkerWatchOptions & {
    /** Default: all. */
    namespace?: string | undefined
    onReplace(runs: Run[]): void
    onRun(run: Run): void
    onRemoved(run: Run): void
  },
): Promise<void> {
  const { client, name, namespace, signal, onReplace, onRun, onRemoved, onError } = options
  await listWatch(client, runResource, {
    namespace,
    fieldSelector: `spec.workerName=${name}`,
    signal,
    onReplace,
    onEvent: ({ type, object }) => {
      if (type === 'DELETED') onRemoved(object)
      else if (type === 'ADDED' || type === 'MODIFIED') onRun(object)
    },
    onError,
    backoff: { minMs: 200, maxMs: 2_000 },
  })
}

/** Watches a registered worker's own object, until `signal` is aborted. */
export async function watchOwnWorker(
  options: WorkerWatchOptions & { onWorker(worker: Worker): void; onDeleted(): void; startAfterMs?: number },
): Promise<void> {
  const { client, name, signal, onWorker, onDeleted, onError, startAfterMs = watchWorkerAfterMs } = options
  await delay(startAfterMs, undefined, { signal }).catch(() => {})
  await listWatch(client, workerResource, {
    fieldSelector: `metadata.name=${name}`,
    signal,
    // An empty list: the object was deleted before the watch started or while it was interrupted.
    onReplace: workers => (workers.length === 0 ? onDeleted() : workers.forEach(onWorker)),
    onEvent: ({ type, object }) => {
      if (type === 'ADDED' || type === 'MODIFIED') onWorker(object)
      else if (type === 'DELETED') onDeleted()
    },
    onError,
  })
}

/** The Runs that are assigned to a worker, for an assignment that the watch has not delivered yet; empty if the server does not respond. */
export async function listAssignedRuns(client: Client, name: string, namespace?: string): Promise<readonly Run[]> {
  const listing = client.resource(runResource).listAll({ namespace, fieldSelector: `spec.workerName=${name}` })
  return await listing.then(
    ({ items }) => items,
    () => [],
  )
}
