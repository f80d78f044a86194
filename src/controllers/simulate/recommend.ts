import type { Profile } from './profile.ts'
import type { SimulationResult } from './simulate-fleet.ts'

/** How long the 99th percentile of Runs may wait for a worker, in milliseconds. */
export type WaitTarget = { readonly changeMs: number; readonly driftCheckMs: number }

export type CostComparison = {
  /** Per day, as all costs here. */
  readonly workers: number
  /** With a pod per Stack that is always there. */
  readonly podPerStack: number
  /** Workers as a share of that. */
  readonly share: number
}

export type Recommendation = {
  /** Undefined: none of the sizes is enough. */
  readonly max: number | undefined
  /** For people: what to set, or why no size is enough and what would help. */
  readonly text: string
}

/** About `count` sizes from `from` to `to`, both included, evenly spaced. */
export function sizesOf(from: number, to: number, count = 10): number[] {
  const steps = Math.min(count - 1, to - from)
  return steps <= 0 ? [from] : Array.from({ length: steps + 1 }, (_, index) => Math.round(from + ((to - from) * index) / steps))
}

/** What the workers cost, and what a pod per Stack would: that one is paid around the clock, whatever it does. */
export function compareCosts({ workerHours, hours }: SimulationResult, stacks: number, { price }: Profile): CostComparison {
  const workers = (workerHours * 24 * price.perWorkerHour) / hours
  const podPerStack = stacks * 24 * price.perPodHour
  return { workers, podPerStack, share: podPerStack === 0 ? 0 : workers / podPerStack }
}

/** The smallest size that keeps the target. `results` are in the order of their size. */
export function recommend(results: readonly SimulationResult[], target: WaitTarget): Recommendation {
  const enough = results.find(result => meetsTarget(result, target))
  if (enough) {
    const { max, workers } = enough
    const usually = `${workers.mean.toFixed(1)} workers on average, ${workers.peak} at most`
    const smaller = enough === results[0] && results.length > 1 ? '; a smaller one may do, too: look at a lower range' : ''
    return { max, text: `set max: ${max} (${usually})${smaller}` }
  }
  const largest = results.at(-1)
  if (!largest) return { max: undefined, text: 'no size was looked at' }
  if (largest.workers.peak < largest.max) {
    return {
      max: undefined,
      text: `no size keeps the target, and more workers would not help: at most ${largest.workers.peak} were used. Starting one takes too long: keep some (--min), keep them warm (--lifecycle Warm), or make them start sooner`,
    }
  }
  return { max: undefined, text: `no size keeps the target: at ${largest.max} all workers are in use at times. Look at a higher range` }
}

/** True where the waits are within the target, and the queue was not left growing. */
export function meetsTarget({ wait }: SimulationResult, target: WaitTarget): boolean {
  return wait.Change.p99Ms <= target.changeMs && wait.DriftCheck.p99Ms <= target.driftCheckMs
}
