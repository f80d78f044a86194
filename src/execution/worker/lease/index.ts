/**
 * @module worker/lease: registers a worker, renews its Lease, and decides when its engines must stop. Start reading at `heartbeat.ts`, then
 * `decide-fence.ts`.
 * In: a name, a pool, the timings of the Lease. Out: a Worker and a Lease, renewals, the steps SIGINT, SIGTERM and SIGKILL of a fence.
 * `heartbeat-thread.ts` renews on a thread of its own, as `decide-renewal.ts` decides. `testdata/` has transcripts, with supervisor and dispatch.
 * Time is `bootMs`, which continues while the machine is suspended (invariant 2).
 * Not here: what a step does to a Run (`../run/run-stopper.ts`), who enforces it if the worker cannot (`../supervisor/`).
 * The supervisor process and the heartbeat's thread import single files of this folder, because they must stay small.
 */
export type { FenceStep, FenceTimings } from './decide-fence.ts'
export { Heartbeat, type HeartbeatOptions } from './heartbeat.ts'
export { leaseRenewal } from './lease-renewal.ts'
export { checkLeaseTimings, defaultLeaseTimings, type LeaseTimings, leaseTimingsOf } from './lease-timings.ts'
export { deregister, patchWorkerStatus, type Registration, RegistrationError, register } from './registration.ts'
