import { isEnded, type Run } from './run.ts'
import type { StackStatus } from './stack.ts'

/**
 * True when the status of the Run's Stack includes its end: `lastRunNumber` and the phase in `lastRun` record which Runs are
 * counted. Until then the Run must not be removed, because its epoch could be used again (invariant 3).
 */
export function isCounted({ spec }: Pick<Run, 'spec'>, status: Pick<StackStatus, 'lastRun' | 'lastRunNumber'> | undefined): boolean {
  const { lastRun, lastRunNumber = 0 } = status ?? {}
  const isLastCounted = lastRun !== undefined && isEnded({ status: { phase: lastRun.phase } } as Run)
  return spec.epoch < lastRunNumber || (spec.epoch === lastRunNumber && isLastCounted)
}
