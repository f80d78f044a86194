/**
 * @module worker/hollow: many simulated workers in one process, for load tests. Start reading at `hollow-fleet.ts`.
 * In: a client, a profile of the durations of Runs (`profile.ts`). Out: Workers, renewed Leases, reported Runs, latencies.
 * Registration, renewals and reports are those of real workers (`../lease/`, `../run/run-reporter.ts`). `stack-load.ts` creates the Runs.
 * Not here: the command and its output (`cli/commands/hollow.ts`).
 */
export { type FleetCounts, HollowFleet, type HollowFleetOptions } from './hollow-fleet.ts'
export type { Latencies } from './latencies.ts'
export { emptyProfile, type HollowProfile, ProfileError, parseHollowProfile } from './profile.ts'
export { HollowStackLoad, type HollowStackLoadOptions } from './stack-load.ts'
