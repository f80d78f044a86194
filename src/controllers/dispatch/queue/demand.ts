import type { EquivalenceClass, TenantAccount } from './fair-queue.ts'
import type { RunQueue } from './run-queue.ts'

/**
 * How many Runs of the pool one more worker after the other would let start: those that no limit holds back, and no more
 * of them than the limits leave room for. Counting stops at `enough`, so it costs no more than that.
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
