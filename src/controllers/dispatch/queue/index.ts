/**
 * queue: whose turn it is. Start reading at `run-queue.ts`; `lanes.ts` is the tree it ranks by, `decayed-usage.ts` the
 * arithmetic of fair share, `tenants.ts` who belongs to whom, `preview.ts` who will be next after that.
 * `queue-keeper.ts` feeds it from the caches, `tenant-keeper.ts` writes the status of Tenants, `queue-report.ts` tells people.
 * In: Runs that wait, start and end; Tenants; limits. Out: the next Run of a shape. Pure: times are passed in.
 * Not done here: which Worker takes it (`place/`).
 */
export { UsageScale } from './decayed-usage.ts'
export { countStartable } from './demand.ts'
export type { EquivalenceClass, FifoQueue, QueueEntry, TenantAccount } from './fair-queue.ts'
export { isOlder } from './fair-queue.ts'
export { type PreviewEntry, preview, type QueuePreview } from './preview.ts'
export { classRank, rankOf } from './priority-class.ts'
export { QueueController } from './queue-controller.ts'
export { maxReportedRuns, type QueuedRun, type QueueReport, type QueueReportOptions, queueReport } from './queue-report.ts'
export { expectedRunMs, RunQueue, type RunQueueOptions } from './run-queue.ts'
export { isSameRequest, type Requirements, type RunRequest, requestOf, requirementsOf } from './run-request.ts'
export { TenantController } from './tenant-controller.ts'
export { selectorError, type TenantConflict, TenantIndex, type TenantSettings } from './tenants.ts'
