/**
 * @module console/projection: what the console shows of the objects. Start reading at `projections.ts`.
 * In: Stacks, Runs, Workers and the other kinds as caches report them. Out: rows, the tables and summaries that views ask for (`table-view.ts`,
 * `overview.ts`), and what has changed of a view (`view-delta.ts`). Without outputs and variables (invariant 9).
 * A row is computed once for each change of its object. `history.ts` keeps what `fleet-monitor.ts` counts. Everything but that and `projections.ts` is pure.
 * Out of scope: who may see a row (`console/server/` passes in what is visible), and how rows are sent.
 */
export { FleetMonitor, type FleetMonitorSources } from './fleet-monitor.ts'
export { History, type HistoryEntry, type HistorySample } from './history.ts'
export { matchingStacks } from './matching-stacks.ts'
export { overviewOf } from './overview.ts'
export { type ProjectionSources, Projections, type RowTables } from './projections.ts'
export { relatedRuns } from './related-runs.ts'
export { RowTable } from './row-table.ts'
export type { PartitionBody } from './rows.ts'
export { type TableView, tableView } from './table-view.ts'
export { SentView, type ViewContent, viewDelta } from './view-delta.ts'
