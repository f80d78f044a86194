/**
 * @module dispatch/status: what people read about the queue, pools and tenants. Pure.
 * In: the queue, Workers, WorkerPools, Tenants, the starts of each pool. Out: `status.reason` and `status.queuePosition` of queued Runs, the statuses of
 * WorkerPools and Tenants, the response of `/queue`.
 * Start reading at `pending-reason.ts`. `coalesced-writes.ts` decides when a status that changes all the time is written.
 * Not done here: writing (`shell/`), and metrics, which are exact and computed at each scrape.
 */
export { DemandReports } from './demand-reports.ts'
export { type PendingReason, PendingReasons } from './pending-reason.ts'
export { PoolStatuses } from './pool-statuses.ts'
export { QueuePositions } from './queue-positions.ts'
export { maxReportedRuns, type QueuedRun, type QueueReport, type QueueReportOptions, queueReport } from './queue-report.ts'
export { TenantReports } from './tenant-reports.ts'
export type { PartitionError, TenantCounts } from './tenant-status.ts'
export { TenantStatuses } from './tenant-statuses.ts'
