/**
 * bury: which workers are dead, and what becomes of what they leave (invariant 2). `decide-lost.ts` and
 * `lease-observer.ts` decide; `undertaker.ts` asks the server once more and acts.
 */
export { decideLost, type LostDecision, type LostInput, type LostWorker } from './decide-lost.ts'
export { LeaseObserver } from './lease-observer.ts'
export { LostWorkerController } from './lost-worker-controller.ts'
