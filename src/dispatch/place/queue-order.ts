import type { Run } from '../../api/index.ts'
import { objectKey } from '../../kube/index.ts'

/**
 * Which of two queued Runs goes first: the higher priority, then the older one. Creation times have whole seconds, so
 * Runs of one second go by resourceVersion, which rises with every write, and at last by uid, so that the order is total.
 */
export function compareQueued(a: Run, b: Run): number {
  if (a.spec.priority !== b.spec.priority) return b.spec.priority - a.spec.priority
  const [left, right] = [a.metadata, b.metadata]
  if (left.creationTimestamp !== right.creationTimestamp) return left.creationTimestamp < right.creationTimestamp ? -1 : 1
  if (left.resourceVersion !== right.resourceVersion) {
    const longer = left.resourceVersion.length - right.resourceVersion.length
    return longer || (left.resourceVersion < right.resourceVersion ? -1 : 1)
  }
  return left.uid < right.uid ? -1 : left.uid > right.uid ? 1 : 0
}

/** `namespace/name` of the Runs that wait, in order. */
export function queueOrder(queued: readonly Run[]): string[] {
  return [...queued].sort(compareQueued).map(objectKey)
}
