/**
 * @module fairness: whose request is next. Start reading at `fairness.ts`.
 * In: who makes a request and how long its body is. Out: go on at once, go on when it is your turn, or 429.
 * It costs next to nothing while nobody waits. Not here: what a request may be long at most (http/), how many writes may wait for
 * the disk (storage/), how much may wait for a slow watcher (watch/).
 */
export { Fairness, type FairnessLimits, type FairnessStats, type Flow } from './fairness.ts'
export { TimeSlice, yieldEvery } from './time-slice.ts'
