/**
 * @module watch: changes of a table, sent to whoever watches it. Start reading at `watcher.ts`.
 * In: durable events, a selection, an open response. Out: lines on the wire. Invariants 6 (a watch is a log) and
 * 10 (a slow watcher is cut off, not buffered without end).
 */
export { WatchHub } from './watch-hub.ts'
export type { Revalidate } from './watcher.ts'
export { Watcher } from './watcher.ts'
