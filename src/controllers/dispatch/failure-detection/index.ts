/**
 * @module dispatch/failure-detection: which workers are lost, and which are suspect (invariant 2). Pure.
 * In: Leases as observed, Workers, whether a worker has Runs, exited processes; times of a monotonic clock. Out: workers whose loss the server has to
 * confirm, confirmed losses, suspects.
 * Start reading at `failure-detector.ts`; `lease-observer.ts` is its clock, `loss-of.ts` the rule by which the server confirms a loss.
 * Not done here: ending the Runs of lost workers (`run-cleanup.ts`), asking the server (`shell/`), renewing Leases and stopping engines, which is the
 * worker's own duty (`execution/worker/`).
 */
export { type ExpiredWorker, FailureDetector } from './failure-detector.ts'
export { LeaseObserver } from './lease-observer.ts'
export { lossOf } from './loss-of.ts'
