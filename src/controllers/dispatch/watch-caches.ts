import { isEnded, type Run, type Stack, type Worker } from '../../api/index.ts'
import { equalJson, type KubeObject } from '../../kubernetes/object/index.ts'
import { leaseVersionOf } from './caches.ts'
import type { DispatchContext } from './dispatch-context.ts'
import type { LostWorkerController } from './failure-detection/index.ts'
import type { PoolController } from './pool/index.ts'
import type { QueueController } from './queue/index.ts'
import type { WorkerTemplateCache } from './worker-template-cache.ts'

/** The components that are kept up to date from the caches, and the two loops that are woken. */
export type CacheSubscribers = {
  readonly context: Pick<DispatchContext, 'caches' | 'metrics' | 'nowMs' | 'wake' | 'writes'>
  readonly queue: QueueController
  readonly pools: PoolController
  readonly lostWorkers: LostWorkerController
  readonly workerTemplates: WorkerTemplateCache
  readonly inventory: { update(worker: Worker): void; delete(name: string): void }
  readonly wakeFailureDetection: () => void
}

type WithMetadata = { metadata: KubeObject['metadata'] }

/**
 * Passes every change of the caches on to the components that depend on it.
 * @returns functions that cancel the subscriptions.
 */
export function watchCaches(subscribers: CacheSubscribers): (() => void)[] {
  const { context, queue, pools, lostWorkers, workerTemplates, inventory, wakeFailureDetection } = subscribers
  const { caches, metrics, nowMs, wake, writes } = context
  const onSettingsChanged = () => {
    queue.settingsChanged()
    wake()
  }
  const settingsHandler = {
    added: onSettingsChanged,
    updated: (old: WithMetadata, { metadata }: WithMetadata) => {
      if (old.metadata.generation !== metadata.generation) onSettingsChanged()
    },
    deleted: ({ metadata }: WithMetadata) => {
      workerTemplates.invalidate(metadata.name)
      onSettingsChanged()
    },
  }
  const onStackChanged = (stack: Stack) => {
    for (const run of caches.runs.byIndex('byStack', stack.metadata.uid)) queue.observeRun(run)
    wake()
  }
  return [
    caches.runs.onChange({
      added: run => {
        queue.observeRun(run)
        wake()
      },
      updated: (old, run) => {
        queue.observeRun(run)
        if (!isEnded(old) && isEnded(run)) metrics.runEnded(run, queue.queue.tenantOf(run.metadata.namespace ?? ''))
        if (hasStarted(run) && !hasStarted(old)) pools.workerStartedRun(run.spec.workerName!)
        // Progress does not affect scheduling; without this check every resource that an engine finishes would cause a pass.
        if (affectsScheduling(old, run)) wake()
        const { workerName } = run.spec
        // A pass of failure detection examines every Lease, so it is skipped for a worker whose Lease is already observed.
        if (old.spec.workerName !== workerName && (workerName === undefined || !lostWorkers.isObserved(workerName))) wakeFailureDetection()
      },
      deleted: run => {
        queue.removeRun(run)
        writes.forget(run)
        wake()
      },
    }),
    caches.workers.onChange({
      added: worker => {
        inventory.update(worker)
        workerTemplates.observe(worker)
        pools.workerRegistered(worker.spec.pool, worker.metadata.name)
        wake()
        wakeFailureDetection()
      },
      updated: (_, worker) => {
        inventory.update(worker)
        workerTemplates.observe(worker)
        wake()
      },
      deleted: worker => {
        const { name } = worker.metadata
        workerTemplates.workerDeleted(worker, nowMs())
        inventory.delete(name)
        pools.workerDeleted(name)
        queue.workerDeleted(name)
        wake()
      },
    }),
    caches.pools.onChange(settingsHandler),
    caches.tenants.onChange(settingsHandler),
    caches.namespaces.onChange({
      added: onSettingsChanged,
      updated: (old, namespace) => {
        if (!equalJson(old.metadata.labels, namespace.metadata.labels)) onSettingsChanged()
      },
      deleted: onSettingsChanged,
    }),
    caches.stacks.onChange({ added: onStackChanged, deleted: onStackChanged }),
    caches.leases.onChange({
      added: wakeFailureDetection,
      updated: (_, lease) => lostWorkers.observeRenewal(lease.metadata.name, leaseVersionOf(lease)),
    }),
  ]
}

/** Reports whether the assigned worker has started the Run. A Run that is Lost does not count: its previous worker started it. */
function hasStarted({ spec, status }: Run): boolean {
  const phase = status?.phase ?? 'Queued'
  return spec.workerName !== undefined && phase !== 'Queued' && phase !== 'Assigned' && phase !== 'Lost'
}

function affectsScheduling(old: Run, run: Run): boolean {
  return (
    old.status?.phase !== run.status?.phase ||
    old.spec.workerName !== run.spec.workerName ||
    old.spec.cancel !== run.spec.cancel ||
    old.metadata.deletionTimestamp !== run.metadata.deletionTimestamp
  )
}
