import type { EquivalenceClass, TenantAccount } from './queue-tree.ts'
import type { RunQueue } from './run-queue.ts'

/**
 * Counts the Runs of the pool that would start if it had enough workers: the eligible ones, up to the limits. Counting stops at `enough`, which
 * bounds its cost.
 */
export function countStartable(queue: RunQueue, pool: string, equivalenceClasses: Iterable<EquivalenceClass>, enough: number): number {
  const limit = Math.min(enough, queue.maxRunning - queue.running, queue.poolLimit(pool) - queue.runningIn(pool))
  const remainingByAccount = new Map<TenantAccount, number>()
  let startable = 0
  for (const equivalenceClass of equivalenceClasses) {
    for (const { eligible } of equivalenceClass.levels) {
      for (const { account, eligible: fifos } of eligible.members()) {
        let remaining = remainingByAccount.get(account) ?? account.maxRunning - account.running
        for (const fifo of fifos.members()) {
          const count = Math.min(remaining, fifo.runs.size, fifo.limit - queue.runningWithKeyOf(fifo))
          startable += count
          remaining -= count
          if (startable >= limit) return Math.max(0, limit)
          if (remaining === 0) break
        }
        remainingByAccount.set(account, remaining)
      }
    }
  }
  return startable
}
