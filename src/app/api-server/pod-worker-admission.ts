import { systemNamespace, type Worker } from '../../api/index.ts'
import { equalJson, type KubeObject } from '../../kubernetes/object/index.ts'
import type { AdmissionRequest } from '../../kubernetes/server/index.ts'
import { isWorkerOf, type PodUser, podWorkerMessages } from '../worker-identity.ts'

/** Why a worker Pod may not write this Worker so. A controller has created it with all that decides which Runs the worker gets. */
export function podWorkerProblem(
  { user }: Pick<AdmissionRequest, 'user'>,
  { uid }: PodUser,
  object: KubeObject,
  oldObject: KubeObject | undefined,
): string | undefined {
  if (!oldObject) return podWorkerMessages.create
  if (!isWorkerOf(user, oldObject as Worker)) return podWorkerMessages.own
  const recorded = (worker: KubeObject) => {
    const { metadata, spec } = worker as Worker
    const { labels = {}, ownerReferences = [], finalizers = [] } = metadata
    return { labels, ownerReferences, finalizers, spec: { ...spec, pod: { ...spec.pod, uid } } }
  }
  const hasOwnUid = [undefined, uid].includes((object as Worker).spec.pod?.uid)
  return hasOwnUid && equalJson(recorded(object), recorded(oldObject)) ? undefined : podWorkerMessages.fields
}

/** Why a worker Pod may not write this Lease so: its holder is the Pod, so that another Pod of the name cannot renew it. */
export function podLeaseProblem(
  { namespace }: Pick<AdmissionRequest, 'namespace'>,
  { name, uid }: PodUser,
  object: KubeObject,
  oldObject: KubeObject | undefined,
): string | undefined {
  const isHeld = (lease: KubeObject) => (lease as { spec?: { holderIdentity?: unknown } }).spec?.holderIdentity === uid
  const isOwn = namespace === systemNamespace && object.metadata.name === name
  return isOwn && isHeld(object) && (!oldObject || isHeld(oldObject)) ? undefined : podWorkerMessages.lease
}
