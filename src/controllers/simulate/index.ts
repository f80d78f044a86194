/**
 * @module simulate: how many workers a fleet needs, what its Runs wait and what that costs. Start reading at `simulate-fleet.ts`.
 * In: a fleet (Stacks, interval, tenants), a profile of how its Runs are (`profile.ts`), a pool, a seed. Out: waits, utilisation,
 * worker-hours; for a range of sizes of the pool a recommendation (`recommend.ts`), a chart and a picture (`report/`).
 * Whose turn it is, who gets a Run, how many workers there should be and when a Stack is due are asked of the deciders of `dispatch/` and
 * `stack/`, the very ones that run a fleet; time is a number, chance comes from the seed, so the same question has the same answer.
 * Not done here: engines, the API server and its delays (milliseconds), workers that fail or are lost.
 */
export { defaultProfile, type Profile, parseProfile } from './profile.ts'
export { type CostComparison, compareCosts, type Recommendation, recommend, sizesOf, type WaitTarget } from './recommend.ts'
export { chartLines, drawSvg, formatCount, formatPrice, formatRoundedDuration, summaryLine } from './report/index.ts'
export { type FleetSpec, type PoolConfig, type SimulationResult, simulateFleet, type WaitSummary } from './simulate-fleet.ts'
export { simulateSizes } from './simulate-sizes.ts'
