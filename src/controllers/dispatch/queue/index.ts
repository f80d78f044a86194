/**
 * @module dispatch/queue: the order of queued Runs, and the limits that block them. Pure.
 * In: Runs that are queued, start and end; Tenants; limits. Out: the next Run of an equivalence class, and previews of the order.
 * Start reading at `run-queue.ts`; `queue-tree.ts` is the tree that it orders Runs by, `decayed-usage.ts` the arithmetic of fair share,
 * `tenants.ts` the mapping of namespaces to tenants, `preview.ts` the forecast of the order.
 * Not done here: which Worker gets a Run (`placement/`), and reporting the queue (`status/`).
 */
export { UsageScale } from './decayed-usage.ts'
export { countStartable, startableInOrder } from './demand.ts'
export { type PodPlace, podPlaceOf, type RunOwner } from './pod-place.ts'
export { type PreviewEntry, previewQueueOrder, type QueuePreview } from './preview.ts'
export { classRank } from './priority-class.ts'
export type { EquivalenceClass, FifoQueue, RunQueueEntry, TenantAccount } from './queue-tree.ts'
export { isOlder } from './queue-tree.ts'
export { expectedRunMs, RunQueue, type RunQueueOptions } from './run-queue.ts'
export {
  isSameRequest,
  type Requested,
  type Requirements,
  type RunRequest,
  requestOf,
  requirementsOf,
  withPolicies,
} from './run-request.ts'
export { selectorError, type TenantConflict, TenantIndex, type TenantSettings } from './tenants.ts'
