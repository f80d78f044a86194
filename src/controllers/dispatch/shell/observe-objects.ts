import {
  isEnded,
  labels,
  type Run,
  recordedEpoch,
  runResource,
  type Stack,
  stackFinalizer,
  stackResource,
  systemNamespace,
  type Tenant,
  tenantResource,
  type Worker,
  type WorkerPool,
  workerPoolResource,
  workerResource,
} from '../../../api/index.ts'
import { type LeaseBody, leaseResource, type NamespaceBody, namespaceResource } from '../../../kubernetes/client/index.ts'
import type { ChangingSelector, Informer, Manager } from '../../../kubernetes/controller/index.ts'
import { type KubeObject, objectKey } from '../../../kubernetes/object/index.ts'
import type { DispatchCore } from '../dispatch-core.ts'
import type { DispatchEvent, WorkerLease } from '../dispatch-event.ts'
import type { PartitionError } from '../status/index.ts'

/** Where several dispatchers share workers. */
export type SharedWorkersOptions = {
  /** Cluster of the manager that has the Workers and their Leases: a gateway, which merges those of all partitions. */
  readonly cluster: string
  /** Name of the partition of this dispatcher. */
  readonly partition: string
  /** Of the Workers and Leases that this dispatcher sees. */
  readonly selector: ChangingSelector
  /** False for a worker that another dispatcher prefers: it is used when no other fits. */
  readonly isPreferred: (worker: Worker) => boolean
  /** Calls the listener when selector or preference have changed; returns a function that removes it. */
  onChange(listener: () => void): () => void
  /** False: another dispatcher starts and drains the workers of all pools, and writes their status. */
  readonly sizesPools: boolean
  /** Whether the dispatcher of another partition uses this worker. */
  readonly sees: (partition: string, worker: string) => boolean
  readonly partitionError?: PartitionError | undefined
  /** Whether the namespaces of a Tenant are in this partition. */
  readonly hasTenant: (tenant: Tenant) => boolean
}

/** The caches whose changes are reported to the core. */
export type Caches = {
  readonly runs: Informer<{ spec: Run['spec']; status?: Run['status'] }>
  readonly workers: Informer<{ spec: Worker['spec']; status?: Worker['status'] }>
  readonly pools: Informer<{ spec: WorkerPool['spec']; status?: WorkerPool['status'] }>
  readonly stacks: Informer<{ spec: Stack['spec']; status?: Stack['status'] }>
  readonly leases: Informer<LeaseBody>
  readonly tenants: Informer<{ spec: Tenant['spec']; status?: Tenant['status'] }>
  /** Names and labels only. */
  readonly namespaces: Informer<NamespaceBody>
}

/** @param shared where the workers are, if that is not the manager's own server, and which of them are watched. */
export function addCaches(manager: Manager, shared?: Pick<SharedWorkersOptions, 'cluster' | 'selector'>): Caches {
  const { cluster, selector } = shared ?? {}
  return {
    runs: manager.informer(runResource),
    workers: manager.informer(workerResource, { cluster, selector }),
    pools: manager.informer(workerPoolResource),
    stacks: manager.informer(stackResource),
    leases: manager.informer(leaseResource, { namespace: systemNamespace, cluster, selector }),
    tenants: manager.informer(tenantResource),
    namespaces: manager.informer(namespaceResource, {
      transform: ({ apiVersion, kind, metadata: { managedFields: _, annotations: __, ...metadata } }) => ({ apiVersion, kind, metadata }),
    }),
  }
}

export type ObserveObjectsOptions = {
  readonly caches: Caches
  readonly registered: (worker: Worker) => Worker
  readonly core: Pick<DispatchCore, 'hasRun'>
  readonly observe: (event: DispatchEvent) => void
  readonly onRunEnded: (run: Run) => void
}

/**
 * Reports every object that exists, and then every change. Settings come before Workers, and Workers before Runs, because Runs are counted by them.
 * @returns functions that cancel the subscriptions.
 */
export function observeObjects({ caches, registered, core, observe, onRunEnded }: ObserveObjectsOptions): (() => void)[] {
  const observeWorker = (worker: Worker): DispatchEvent => ({ kind: 'WorkerChanged', worker: registered(worker) })
  /** Passes changes on without unpacking the previous version of an object. */
  const report = <Body>(
    informer: Informer<Body>,
    changed: (object: KubeObject<Body>, added: 'Initial' | 'Later' | undefined) => DispatchEvent | undefined,
    deleted: (object: KubeObject<Body>) => DispatchEvent,
  ) =>
    informer.onChange({
      changed: change => {
        const added = change.type !== 'added' ? undefined : change.isInitial ? 'Initial' : 'Later'
        const event = change.type === 'deleted' ? deleted(change.object) : changed(change.object, added)
        if (event) observe(event)
      },
    })
  return [
    report(
      caches.namespaces,
      namespace => ({ kind: 'NamespaceChanged', namespace }),
      namespace => ({ kind: 'NamespaceDeleted', namespace }),
    ),
    report(
      caches.tenants,
      tenant => ({ kind: 'TenantChanged', tenant }),
      tenant => ({ kind: 'TenantDeleted', tenant }),
    ),
    report(
      caches.pools,
      pool => ({ kind: 'PoolChanged', pool }),
      pool => ({ kind: 'PoolDeleted', pool }),
    ),
    report(
      caches.stacks,
      stack => subjectChanged(stack),
      ({ metadata: { namespace = '', name, uid } }) => ({ kind: 'SubjectDeleted', subject: { kind: 'Stack', namespace, name, uid } }),
    ),
    report(caches.workers, observeWorker, worker => ({ kind: 'WorkerDeleted', worker })),
    report(
      caches.leases,
      (lease, added) => {
        const worker = added && caches.workers.get(lease.metadata.name)
        // Its Lease may be all that it has registered with.
        if (worker && registered(worker) !== worker) observe(observeWorker(worker))
        return { kind: 'LeaseChanged', lease: workerLeaseOf(lease) }
      },
      ({ metadata }) => ({ kind: 'LeaseDeleted', worker: metadata.name }),
    ),
    report(
      caches.runs,
      (run, added) => {
        const isInitial = added === 'Initial'
        if (!isInitial && isEnded(run) && core.hasRun(objectKey(run))) onRunEnded(run)
        return { kind: 'RunChanged', run, isInitial }
      },
      run => ({ kind: 'RunDeleted', run }),
    ),
  ]
}

export function workerLeaseOf({ metadata, spec }: KubeObject<LeaseBody>): WorkerLease {
  const { name, uid, resourceVersion, labels: own } = metadata
  const durationMs = (spec?.leaseDurationSeconds ?? 0) * 1_000
  return { worker: name, uid, resourceVersion, isOfWorker: own?.[labels.pool] !== undefined, durationMs }
}

export function subjectChanged({ metadata, status }: Pick<Stack, 'metadata' | 'status'>): DispatchEvent & { kind: 'SubjectChanged' } {
  const { namespace = '', name, uid, deletionTimestamp, finalizers } = metadata
  // Deleted, and kept by finalizers of others only.
  const isReleased = deletionTimestamp !== undefined && !finalizers?.includes(stackFinalizer)
  const epoch = isReleased ? Number.POSITIVE_INFINITY : recordedEpoch(status)
  return { kind: 'SubjectChanged', subject: { kind: 'Stack', namespace, name, uid }, recordedEpoch: epoch }
}
