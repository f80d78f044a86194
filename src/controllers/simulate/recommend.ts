import type { Profile } from './profile.ts'
import type { SimulationResult } from './simulate-fleet.ts'

/** Maximum 99th percentile of the wait, in milliseconds. */
export type WaitTarget = { readonly changeMs: number; readonly driftCheckMs: number }

export type CostComparison = {
  /** Cost of the workers per day, like all costs here. */
  readonly workers: number
  /** Cost of a dedicated Pod for each Stack around the clock. */
  readonly podPerStack: number
  /** `workers` as a share of `podPerStack`. */
  readonly share: number
}

export type Recommendation = {
  /** Undefined: no size meets the target. */
  readonly max: number | undefined
  /** For people: what to set, or why no size meets the target and what would help. */
  readonly text: string
}

/** About `count` sizes from `from` to `to`, both included, evenly spaced. */
export function sizesOf(from: number, to: number, count = 10): number[] {
  const steps = Math.min(count - 1, to - from)
  return steps <= 0 ? [from] : Array.from({ length: steps + 1 }, (_, index) => Math.round(from + ((to - from) * index) / steps))
}

/** Compares the cost of the workers with that of a dedicated Pod for each Stack, which is paid around the clock. */
export function compareCosts({ workerHours, hours }: SimulationResult, stacks: number, { price }: Profile): CostComparison {
  const workers = (workerHours * 24 * price.perWorkerHour) / hours
  const podPerStack = stacks * 24 * price.perPodHour
  return { workers, podPerStack, share: podPerStack === 0 ? 0 : workers / podPerStack }
}

/** Recommends the smallest size that meets the target. `results` are ordered by size. */
export function recommend(results: readonly SimulationResult[], target: WaitTarget): Recommendation {
  const enough = results.find(result => meetsTarget(result, target))
  if (enough) {
    const { max, workers } = enough
    const usage = `${workers.mean.toFixed(1)} workers on average, ${workers.peak} at most`
    const smaller = enough === results[0] && results.length > 1 ? '; a smaller size may suffice: try a lower range' : ''
    return { max, text: `set max: ${max} (${usage})${smaller}` }
  }
  const largest = results.at(-1)
  if (!largest) return { max: undefined, text: 'no size was simulated' }
  if (largest.workers.peak < largest.max) {
    return {
      max: undefined,
      text: `no size meets the target, and a higher maximum would not help: at most ${largest.workers.peak} workers were used. Workers take too long to start: keep some (--min), use warm workers (--lifecycle Warm), or make them start faster`,
    }
  }
  return { max: undefined, text: `no size meets the target: at ${largest.max} all workers were in use at times; try a higher range` }
}

/** Reports whether the waits are within the target. Runs still queued at the end count with their wait until then. */
export function meetsTarget({ wait }: SimulationResult, target: WaitTarget): boolean {
  return wait.Change.p99Ms <= target.changeMs && wait.DriftCheck.p99Ms <= target.driftCheckMs
}
