import { annotations, labels, type Run, type Stack } from '../../api/index.ts'
import type { NamespaceBody } from '../../kubernetes/client/index.ts'
import type { Predicate } from '../../kubernetes/controller/index.ts'
import { equalJson, type KubeObject } from '../../kubernetes/object/index.ts'
import { notReadyReason } from './dependencies.ts'
import type { KeyDigests } from './inputs-digest.ts'

export type StackBody = { spec: Stack['spec']; status?: Stack['status'] }
export type RunBody = { spec: Run['spec']; status?: Run['status'] }

const decisionKeys = [
  annotations.approvedPlan,
  annotations.approvedBy,
  annotations.approvedAt,
  annotations.rejectedPlan,
  annotations.rejectedBy,
  annotations.rejectedAt,
  annotations.rejectionReason,
  annotations.acceptedRestore,
  annotations.destroyPlan,
  annotations.destroySource,
]

/** Ignores the controller's own status writes: deciding on its own outcome changes nothing. */
export const needsReconcile: Predicate<StackBody> = change => {
  if (change.type !== 'updated') return true
  const [old, now] = [change.old.metadata, change.object.metadata]
  return (
    old.generation !== now.generation ||
    old.deletionTimestamp !== now.deletionTimestamp ||
    old.annotations?.[annotations.requestedRun] !== now.annotations?.[annotations.requestedRun] ||
    decisionKeys.some(key => old.annotations?.[key] !== now.annotations?.[key])
  )
}

/**
 * Ignores changes of a Run that no decision reads, such as its progress, its position in the queue and its finalizers. The results of
 * a Run are written together with its last phase. A deleted Run is relevant even if it had ended: a decision no longer finds it.
 */
export const isRelevantToItsStack: Predicate<RunBody> = change => {
  if (change.type !== 'updated') return true
  const [old, now] = [change.old, change.object]
  return (
    old.spec.workerName !== now.spec.workerName ||
    old.spec.cancel !== now.spec.cancel ||
    old.status?.phase !== now.status?.phase ||
    old.status?.reason !== now.status?.reason ||
    old.status?.message !== now.status?.message
  )
}

/** True for changes of the fields that the dependency gate, inputs, cycles and the deletion order read from another Stack. */
export const isRelevantToRelatedStacks: Predicate<StackBody> = change => {
  if (change.type !== 'updated') return true
  const relevantFields = (stack: KubeObject<StackBody>) => {
    const { metadata, status } = stack
    return [
      metadata.generation,
      metadata.deletionTimestamp,
      status?.observedGeneration,
      status?.outputsDigest,
      notReadyReason(stack as Stack),
    ]
  }
  return !equalJson(relevantFields(change.old), relevantFields(change.object))
}

export const hasApprovalPolicyChanged: Predicate<NamespaceBody> = change =>
  change.type !== 'updated' || change.old.metadata.labels?.[labels.approval] !== change.object.metadata.labels?.[labels.approval]

export const haveKeysChanged: Predicate<KeyDigests> = change => change.type !== 'updated' || !equalJson(change.old.keys, change.object.keys)
