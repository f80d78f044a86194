/**
 * @module simulate: estimates how many workers a fleet needs, how long its Runs wait, and what that costs.
 * In: a fleet (Stacks, interval, tenants), a profile of its Runs (`profile.ts`), a pool, a seed. Out: waits, utilization, worker-hours; for a range
 * of pool sizes a recommendation (`recommend.ts`), a chart and an SVG (`report/`).
 * Start reading at `simulate-fleet.ts`. The order of Runs, their assignment, the size of the pool and the due times of Stacks are computed by the
 * deciders of `dispatch/` and `stack/` that run a real fleet. Time is virtual and random numbers come from the seed, so the same input gives the
 * same result.
 * Not done here: engines, the API server and its latency (milliseconds), workers that fail or are lost.
 */
export { defaultProfile, type Profile, parseSimulationProfile } from './profile.ts'
export { type CostComparison, compareCosts, type Recommendation, recommend, sizesOf, type WaitTarget } from './recommend.ts'
export { chartLines, drawSvg, formatCount, formatPrice, formatRoundedDuration, summaryLine } from './report/index.ts'
export { type FleetSpec, type PoolConfig, type SimulationResult, simulateFleet, type WaitSummary } from './simulate-fleet.ts'
export { simulateSizes } from './simulate-sizes.ts'
