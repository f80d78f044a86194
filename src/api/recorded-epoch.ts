import { isEnded, type Run } from './run.ts'
import type { StackStatus } from './stack.ts'

/**
 * The epoch of the newest Run whose end this status of a Stack includes, as that of all Runs before. A newer Run must not be removed, because its
 * epoch could be used again (invariant 3).
 */
export function recordedEpoch(status: Pick<StackStatus, 'lastRun' | 'lastRunNumber'> | undefined): number {
  const { lastRun, lastRunNumber = 0 } = status ?? {}
  const isLastRecorded = lastRun !== undefined && isEnded({ status: { phase: lastRun.phase } } as Run)
  return isLastRecorded ? lastRunNumber : lastRunNumber - 1
}
