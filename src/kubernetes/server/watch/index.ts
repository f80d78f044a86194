/**
 * @module watch: sends the changes of a table to its watchers. Start reading at `watcher.ts`; `watch-manager.ts` schedules deliveries.
 * In: durable events, a selection, an open response. Out: watch events on the response. Invariants 6 (a watch is a log) and 10 (a slow
 * watcher is disconnected, and its buffer is bounded).
 */
export { WatchManager } from './watch-manager.ts'
export type { Revalidate } from './watcher.ts'
export { Watcher } from './watcher.ts'
