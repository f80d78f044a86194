import { previewQueueOrder } from './preview.ts'
import type { EquivalenceClass, RunQueueEntry, TenantAccount } from './queue-tree.ts'
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

/**
 * The first `enough` Runs of the pool that would start if it had enough workers, in scheduling order; up to the limits, as {@link countStartable} counts
 * them.
 */
export function startableInOrder(queue: RunQueue, pool: string, enough: number, nowMs: number): RunQueueEntry[] {
  const limit = Math.min(enough, queue.maxRunning - queue.running, queue.poolLimit(pool) - queue.runningIn(pool))
  if (limit <= 0) return []
  const startable: RunQueueEntry[] = []
  const counted = new Map<unknown, number>()
  const isWithin = (key: unknown, remaining: number) => (counted.get(key) ?? 0) < remaining
  // Runs beyond the limits of their tenants are in the preview: some more than are needed are read.
  for (const { entry } of previewQueueOrder(queue, pool, limit * 2 + 100, nowMs).ordered) {
    if (startable.length >= limit) break
    const { fifo } = entry
    const { account } = fifo.tenantQueue
    const key = fifo.concurrencyKey
    if (!isWithin(account, account.maxRunning - account.running)) continue
    if (key !== undefined && !isWithin(key, fifo.limit - queue.runningWithKeyOf(fifo))) continue
    for (const each of [account, key]) if (each !== undefined) counted.set(each, (counted.get(each) ?? 0) + 1)
    startable.push(entry)
  }
  return startable
}
