/** Thrown when the cost limit is exceeded. Code that runs within {@link withCostLimit} must not catch it. */
export class CostLimitExceededError extends Error {}

const costPerMs = 20_000
let remainingCost = Number.POSITIVE_INFINITY

/**
 * Runs `work` with a limit on its cost, as Kubernetes limits CEL expressions: 1 for each evaluation of a node of an
 * expression, and more for operations on long values; a unit takes about 50 ns. Everything is synchronous, so one counter
 * suffices. `remaining` is below 0 when the limit was exceeded; then there is no result.
 */
export function withCostLimit<T>(limit: number, work: () => T): { result: T | undefined; remaining: number } {
  const outer = remainingCost
  remainingCost = limit
  try {
    const result = work()
    return { result, remaining: remainingCost }
  } catch (error) {
    if (!(error instanceof CostLimitExceededError)) throw error
    return { result: undefined, remaining: -1 }
  } finally {
    remainingCost = outer
  }
}

/**
 * Charges the cost of an operation before it runs.
 * @throws {CostLimitExceededError}
 */
export function chargeCost(cost: number): void {
  remainingCost -= cost
  if (remainingCost < 0) throw new CostLimitExceededError('operation cancelled: actual cost limit exceeded')
}

/**
 * Runs an operation whose cost is not known in advance, and charges the CPU time it took. This is the only clock in
 * `object/`, and serves only to limit hostile input.
 * @throws {CostLimitExceededError}
 */
export function chargeCpuTime<T>(work: () => T): T {
  const before = process.threadCpuUsage()
  const result = work()
  const { user, system } = process.threadCpuUsage(before)
  chargeCost(Math.ceil(((user + system) / 1_000) * costPerMs))
  return result
}
