/** Thrown when something has used up its steps. What runs under a meter must let it through. */
export class CostLimitExceededError extends Error {}

const stepsPerMs = 20_000
let left = Number.POSITIVE_INFINITY

/**
 * Runs `work` with at most `steps` steps: one for each node of an expression each time it is evaluated, and more for what
 * is done to long values; a step takes about 50 ns. All of it is synchronous, so that one counter serves all.
 * `leftOver` is below 0 when the steps did not suffice: then `work` was broken off, and there is no result.
 */
export function withCostLimit<T>(steps: number, work: () => T): { result: T | undefined; leftOver: number } {
  const outer = left
  left = steps
  try {
    const result = work()
    return { result, leftOver: left }
  } catch (error) {
    if (!(error instanceof CostLimitExceededError)) throw error
    return { result: undefined, leftOver: -1 }
  } finally {
    left = outer
  }
}

/**
 * Counts steps that are about to be taken.
 * @throws {CostLimitExceededError}
 */
export function chargeCost(steps: number): void {
  left -= steps
  if (left < 0) throw new CostLimitExceededError('operation cancelled: actual cost limit exceeded')
}

/**
 * Runs what cannot be counted beforehand and counts the processor time it took. This is the one clock in `kube/`, and it
 * is asked for nothing but when to give up on hostile input.
 * @throws {CostLimitExceededError}
 */
export function chargeCpuTime<T>(work: () => T): T {
  const before = process.threadCpuUsage()
  const result = work()
  const { user, system } = process.threadCpuUsage(before)
  chargeCost(Math.ceil(((user + system) / 1_000) * stepsPerMs))
  return result
}
