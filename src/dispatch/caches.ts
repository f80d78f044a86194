import {
  isEnded,
  type Run,
  runResource,
  type Stack,
  stackResource,
  systemNamespace,
  type Worker,
  type WorkerPool,
  workerPoolResource,
  workerResource,
} from '../api/index.ts'
import type { Informer, Manager } from '../controller/index.ts'
import { describeResource, type KubeObject } from '../kube/index.ts'

/**
 * Held by a Run from the moment it has a Worker: deleting it by hand cancels it, and it stays until its engine has
 * stopped. Otherwise the next Run of the Stack could start beside it (invariant 1).
 */
export const assignedFinalizer = 'oarlock.dev/assigned'

export type LeaseBody = { spec?: { renewTime?: string | null; holderIdentity?: string | null } }

export const leaseResource = describeResource<LeaseBody>({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  scope: 'Namespaced',
})

/** What dispatch knows of the world. */
export type Caches = {
  readonly runs: Informer<{ spec: Run['spec']; status?: Run['status'] }>
  readonly workers: Informer<{ spec: Worker['spec']; status?: Worker['status'] }>
  readonly pools: Informer<{ spec: WorkerPool['spec']; status?: WorkerPool['status'] }>
  readonly stacks: Informer<{ spec: Stack['spec']; status?: Stack['status'] }>
  readonly leases: Informer<LeaseBody>
}

export function addCaches(manager: Manager): Caches {
  return {
    runs: manager.informer(runResource, {
      indexes: {
        unassigned: run => (!run.spec.workerName && !isEnded(run) ? ['yes'] : []),
        activeOf: run => (run.spec.workerName && !isEnded(run) ? [run.spec.workerName] : []),
        active: run => (run.spec.workerName && !isEnded(run) ? ['yes'] : []),
        everOf: run => (run.spec.workerName ? [run.spec.workerName] : []),
        leaving: run => (run.metadata.deletionTimestamp && run.metadata.finalizers?.includes(assignedFinalizer) ? ['yes'] : []),
      },
    }),
    workers: manager.informer(workerResource),
    pools: manager.informer(workerPoolResource),
    stacks: manager.informer(stackResource),
    leases: manager.informer(leaseResource, { namespace: systemNamespace }),
  }
}

/** What changes with every renewal, and with nothing that a reader does. */
export function leaseToken(lease: KubeObject<LeaseBody>): string {
  return `${lease.metadata.uid}/${lease.metadata.resourceVersion}`
}

/** False when the Stack that a Run belongs to is gone, or was replaced by another of its name. */
export function hasStack({ stacks }: Caches, run: Run): boolean {
  const stack = stacks.get(`${run.metadata.namespace}/${run.spec.stackRef.name}`)
  return stack?.metadata.uid === run.spec.stackRef.uid
}
