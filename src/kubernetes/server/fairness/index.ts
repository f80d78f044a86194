/**
 * @module fairness: which request starts next, and how long one may keep the event loop. Start reading at `fairness.ts`.
 * In: the user of a request and the length of its body. Out: start now, start later, or 429; `time-slice.ts` divides long loops.
 * It costs almost nothing while no request waits. Not here: limits of one request (http/), of queued writes (storage/), of the buffer
 * of a slow watcher (watch/).
 */
export { Fairness, type FairnessLimits, type FairnessStats, type Flow, type FlowKind } from './fairness.ts'
export { nextSlice, TimeSlice, yieldEvery } from './time-slice.ts'
