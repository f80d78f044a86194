/**
 * bury: which workers are dead, and what becomes of what they leave (invariant 2). `decide-lost.ts` and
 * `lease-observer.ts` decide; `undertaker.ts` asks the server once more and acts.
 */
export { type Death, decideLost, type LostDecision, type LostInput } from './decide-lost.ts'
export { LeaseObserver } from './lease-observer.ts'
export { Undertaker } from './lost-worker-controller.ts'
