/**
 * Hollow workers: many in one process, real to everyone who talks to them, that do nothing. Start reading at `hollow-fleet.ts`.
 * In: a client, a profile of how long Runs take (`profile.ts`). Out: Workers, renewed Leases, reported Runs, and how long answers took.
 * Registration, renewals and reports are those of real workers (`../lease/registration.ts`, `../lease/lease-renewal.ts`, `../run/run-reporter.ts`).
 * `stack-load.ts` makes what they work on. Not here: what is printed of it (`cli/commands/hollow.ts`).
 */
export { type FleetCounts, HollowFleet, type HollowFleetOptions } from './hollow-fleet.ts'
export type { Latencies } from './latencies.ts'
export { emptyProfile, type HollowProfile, ProfileError, parseProfile } from './profile.ts'
export { StackLoad, type StackLoadOptions } from './stack-load.ts'
