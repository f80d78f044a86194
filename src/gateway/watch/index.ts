/**
 * @module gateway/watch: watches over several partitions. Start reading at `serve-watch.ts`, then `merged-watch.ts` and `merge-events.ts`, which is pure.
 * In: the parts of a watch. Out: one watch whose events are in the order of their resource versions (invariant 6); clients of one collection share those of
 * the partitions (`shared-watch.ts`). Objects are passed on without being decoded.
 */

export { ClientWatches, type ClientWatchesOptions, classOf } from './client-watches.ts'
