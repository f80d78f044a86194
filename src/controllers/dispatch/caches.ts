import {
  isEnded,
  type Run,
  runResource,
  type Stack,
  stackResource,
  systemNamespace,
  type Tenant,
  tenantResource,
  type Worker,
  type WorkerPool,
  workerPoolResource,
  workerResource,
} from '../../api/index.ts'
import { type LeaseBody, leaseResource, type NamespaceBody, namespaceResource } from '../../kubernetes/client/index.ts'
import type { Informer, Manager } from '../../kubernetes/controller/index.ts'
import type { KubeObject } from '../../kubernetes/object/index.ts'
import { isUnaccepted } from './acceptance.ts'

/**
 * Finalizer of a Run from its assignment until its end. Deleting an assigned Run cancels it, and the object remains until its engine has
 * stopped. Otherwise the next Run of the Stack could start while the engine still runs (invariant 1).
 */
export const assignedFinalizer = 'oarlock.dev/assigned'

/** The informer caches that dispatch reads. */
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

export function addCaches(manager: Manager): Caches {
  return {
    runs: manager.informer(runResource, {
      indexes: {
        /** Canceled before it was assigned; ended without a Worker. */
        canceled: run => (!run.spec.workerName && run.spec.cancel && !isEnded(run) ? ['yes'] : []),
        byStack: run => (isEnded(run) ? [] : [run.spec.stackRef.uid]),
        /** Assigned to a Worker that has not started it yet. */
        unaccepted: run => (run.spec.workerName && isUnaccepted(run) ? ['yes'] : []),
        deleted: run => (run.spec.workerName && run.metadata.deletionTimestamp && !isEnded(run) ? ['yes'] : []),
        activeByWorker: run => (run.spec.workerName && !isEnded(run) ? [run.spec.workerName] : []),
        active: run => (run.spec.workerName && !isEnded(run) ? ['yes'] : []),
        terminating: run => (run.metadata.deletionTimestamp && run.metadata.finalizers?.includes(assignedFinalizer) ? ['yes'] : []),
      },
    }),
    workers: manager.informer(workerResource),
    pools: manager.informer(workerPoolResource),
    stacks: manager.informer(stackResource),
    leases: manager.informer(leaseResource, { namespace: systemNamespace }),
    tenants: manager.informer(tenantResource),
    namespaces: manager.informer(namespaceResource, {
      transform: ({ apiVersion, kind, metadata: { managedFields: _, annotations: __, ...metadata } }) => ({ apiVersion, kind, metadata }),
    }),
  }
}

/** Identifies one renewal: it changes with every write of the Lease, and only then. */
export function leaseVersionOf(lease: KubeObject<LeaseBody>): string {
  return `${lease.metadata.uid}/${lease.metadata.resourceVersion}`
}

/** Reports whether the Stack of a Run exists; another Stack of the same name does not count. */
export function hasStack({ stacks }: Caches, run: Run): boolean {
  const stack = stacks.get(`${run.metadata.namespace}/${run.spec.stackRef.name}`)
  return stack?.metadata.uid === run.spec.stackRef.uid
}
