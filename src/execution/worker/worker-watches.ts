import { setTimeout as delay } from 'node:timers/promises'
import { type Run, runResource, type Worker, workerResource } from '../../api/index.ts'
import { type Client, listWatch } from '../../kubernetes/client/index.ts'

export type WorkerWatchOptions = { client: Client; name: string; signal: AbortSignal; onError(error: unknown): void }

/** The worker's object is watched only after this delay: the first Run may arrive at any moment, and comes first. */
const watchWorkerAfterMs = 1_000

/** A part of the Runs that are assigned to a worker: those of a namespace, or of all. */
export type RunSelection = { readonly namespace?: string | undefined; readonly fieldSelector?: string | undefined }

const selectionOf = (worker: string, { namespace, fieldSelector }: RunSelection) => ({
  namespace,
  fieldSelector: [`spec.workerName=${worker}`, fieldSelector].filter(Boolean).join(','),
})

/**
 * Watches the Runs that are assigned to a worker, until `signal` is aborted. A reassigned Run is delivered as removed. Each selection has a watch of its own, so that
 * one that waits delays no other; they must not overlap.
 */
export async function watchAssignedRuns(
  options: WorkerWatchOptions & {
    selections: readonly RunSelection[]
    /** All that is known: at first those of one selection. */
    onReplace(runs: Run[]): void
    onRun(run: Run): void
    onRemoved(run: Run): void
  },
): Promise<void> {
  const { client, name, selections, signal, onReplace, onRun, onRemoved, onError } = options
  const known = selections.map(() => new Map<string, Run>())
  await Promise.all(
    selections.map((selection, index) => {
      const own = known[index] as Map<string, Run>
      return listWatch(client, runResource, {
        ...selectionOf(name, selection),
        signal,
        onReplace: runs => {
          own.clear()
          for (const run of runs) own.set(run.metadata.uid, run)
          onReplace(known.flatMap(each => [...each.values()]))
        },
        onEvent: ({ type, object }) => {
          if (type === 'DELETED') {
            own.delete(object.metadata.uid)
            onRemoved(object)
          } else if (type === 'ADDED' || type === 'MODIFIED') {
            own.set(object.metadata.uid, object)
            onRun(object)
          }
        },
        onError,
        backoff: { minMs: 200, maxMs: 2_000 },
      })
    }),
  )
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

/** The Runs that are assigned to a worker, for an assignment that the watch has not delivered yet; without those of a selection to which the server does not respond. */
export async function listAssignedRuns(client: Client, name: string, selections: readonly RunSelection[]): Promise<readonly Run[]> {
  const lists = await Promise.allSettled(selections.map(selection => client.resource(runResource).listAll(selectionOf(name, selection))))
  return lists.flatMap(list => (list.status === 'fulfilled' ? list.value.items : []))
}
