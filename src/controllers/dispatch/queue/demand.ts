import type { Account, Shape } from './lanes.ts'
import type { RunQueue } from './run-queue.ts'

/**
 * How many Runs of the pool one more worker after the other would let start: those that no limit holds back, and no more
 * of them than the limits leave room for. Counting stops at `enough`, so it costs no more than that.
 */
export function wantedIn(queue: RunQueue, pool: string, shapes: Iterable<Shape>, enough: number): number {
  const room = Math.min(enough, queue.maxRunning - queue.running, queue.poolLimit(pool) - queue.runningIn(pool))
  const roomOf = new Map<Account, number>()
  let wanted = 0
  for (const shape of shapes) {
    for (const { open } of shape.classes) {
      for (const { account, lanes } of open.members()) {
        let left = roomOf.get(account) ?? account.maxRunning - account.running
        for (const lane of lanes.members()) {
          const count = Math.min(left, lane.runs.size, lane.limit - queue.keyRunning(lane))
          wanted += count
          left -= count
          if (wanted >= room) return Math.max(0, room)
          if (left === 0) break
        }
        roomOf.set(account, left)
      }
    }
  }
  return wanted
}
