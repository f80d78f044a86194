import { isEnded, isMutating, type Run, type StackStatus } from '../../api/index.ts'
import { lostLimit } from './limits.ts'
import { isAdHocRun, isLifecycleRun, isSuperseded, lostInARow, mayHaveWritten } from './run-facts.ts'

/**
 * The names of ended Runs that a Stack no longer keeps. Beside the newest `limit` it keeps those its next decisions
 * hang on: the one that decides about a retry, the one whose plan waits for approval, the last that may have written
 * (deletion must know that there is something to destroy), and the Lost ones in a row. At most `limit` + 14 (invariant 10).
 *
 * `runs` are the Stack's own, oldest first.
 */
export function runsToDelete(runs: readonly Run[], status: StackStatus, limit: number): string[] {
  const ended = runs.filter(isEnded)
  // Of those that were replaced while they waited only the newest says something, to who looks for it.
  const keep = new Set(ended.filter(run => !isSuperseded(run)).slice(-limit))
  const superseded = ended.findLast(isSuperseded)
  if (superseded) keep.add(superseded)
  const course = ended.filter(isLifecycleRun)
  const lost = Math.min(
    lostInARow(runs, run => !isAdHocRun(run)),
    2 * lostLimit,
  )
  for (const run of course.slice(-Math.max(1, lost))) keep.add(run)
  const written = ended.findLast(mayHaveWritten)
  if (written) keep.add(written)
  const destroy = ended.findLast(run => isMutating(run.spec.type))
  if (destroy) keep.add(destroy)
  return ended.filter(run => !keep.has(run) && run.metadata.name !== status.plan?.runName).map(run => run.metadata.name)
}
