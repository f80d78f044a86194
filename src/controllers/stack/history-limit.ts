import { isEnded, isMutating, type Run, type StackStatus } from '../../api/index.ts'
import { lostRunLimit } from './constants.ts'
import type { StackDecision } from './decision.ts'
import { lastApplied } from './destruction.ts'
import { consecutiveLostRuns, isAdHocRun, isLifecycleRun, isUnattempted, mayHaveWritten } from './run-status.ts'

/**
 * The ended Runs to delete from a Stack's history. Besides the newest `limit` it retains the Runs that later
 * decisions read: the one that determines a retry, the one whose plan awaits approval, the last that may have written
 * (deletion must know that there is something to destroy), the one that a Destroy takes source and inputs from, and consecutive lost ones. At most
 * `limit` + 15 (invariant 10).
 *
 * `runs` are the Stack's own, oldest first.
 */
export function runsToDelete(
  runs: readonly Run[],
  { plan, applied }: Pick<StackStatus, 'plan' | 'applied'>,
  limit: number,
): StackDecision['deleteRuns'] {
  const ended = runs.filter(isEnded)
  // Of Runs of which nothing was attempted only the newest is useful to a reader of the history.
  const retained = new Set(ended.filter(run => !isUnattempted(run)).slice(-limit))
  const unattempted = ended.findLast(isUnattempted)
  if (unattempted) retained.add(unattempted)
  const lost = Math.min(
    consecutiveLostRuns(runs, run => !isAdHocRun(run)),
    2 * lostRunLimit,
  )
  for (const run of ended.filter(isLifecycleRun).slice(-Math.max(1, lost))) retained.add(run)
  const lastWriter = ended.findLast(mayHaveWritten)
  if (lastWriter) retained.add(lastWriter)
  const lastMutating = ended.findLast(run => isMutating(run.spec.type))
  if (lastMutating) retained.add(lastMutating)
  const appliedBy = lastApplied(ended, applied)
  if (appliedBy) retained.add(appliedBy)
  const isDeletable = (run: Run) => !retained.has(run) && run.metadata.name !== plan?.runName && !run.metadata.deletionTimestamp
  return ended.filter(isDeletable).map(({ metadata: { name, uid } }) => ({ name, uid }))
}
