import type { Worker, WorkerPool } from '../../../../api/index.ts'
import { podNamespace } from './make-pod.ts'
import type { Pod } from './pod.ts'

type Known = { readonly worker: Pick<Worker, 'metadata' | 'spec'> | undefined; readonly pool: WorkerPool | undefined }

/**
 * Whether a Pod is that of its worker, and not one to which a user gave the name and the labels of a worker: a user who may create Pods in any namespace
 * could otherwise have Runs declared Lost while their engines run (invariant 2), or use up the capacity of a pool.
 * @param known the Worker of the name of the Pod, undefined if it was deleted or is not known yet; the pool that the label of the Pod names.
 */
export function isWorkerPod({ metadata }: Pod, { worker, pool }: Known): boolean {
  const { name, namespace, uid, ownerReferences = [] } = metadata
  const owner = ownerReferences.find(each => each.controller && each.kind === 'Worker' && each.name === name)
  if (!owner) return false
  if (worker) {
    const { pod } = worker.spec
    return owner.uid === worker.metadata.uid && pod?.namespace === namespace && (pod?.uid ?? uid) === uid
  }
  // The garbage collector deletes it, as its owner does not exist.
  return pool === undefined || pool.spec.podNamespace === 'Stack' || podNamespace(pool) === namespace
}
