/**
 * @module dispatch/shell: the I/O of dispatch. Decides nothing.
 * In: caches of the API server, pool drivers, clocks, randomness. Out: events for the core, writes, calls of drivers, metrics.
 * Start reading at `dispatcher.ts`. `observe-objects.ts` turns changes of the caches into events, `execute-actions.ts` executes what the core
 * decides, each write at the version that it was decided from (invariant 7).
 */
export { boundedLabelValues } from './bounded-label-values.ts'
export { addDispatchController, type Dispatch, type DispatchOptions } from './dispatch-controller.ts'
export type { ReadPendingOperations } from './execute-actions.ts'
export type { SharedWorkersOptions } from './observe-objects.ts'
export { SharedView, type SharedViewOptions } from './shared-view.ts'
