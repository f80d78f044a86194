import type { Run } from '../../api/index.ts'
import { equalJson } from '../../kubernetes/object/index.ts'
import { reportProgressAfterMs } from './constants.ts'
import type { StackDecision } from './decision.ts'
import type { StackFacts } from './facts.ts'
import { isRoutine } from './run-status.ts'

/**
 * The decision without its status, if that reports only the start of `run` for a new generation; the status follows after
 * {@link reportProgressAfterMs}, or with the end of the Run if that comes first. This saves a write for most Runs. Until then
 * `observedGeneration` is lower than the generation, which means by kstatus' conventions that the change is in progress.
 *
 * Everything that the status would record is folded from the Run itself. Its epoch is not used again if it is deleted (invariant 3):
 * from its assignment on, the finalizer of dispatch keeps it until the status includes its end, and no worker had it before.
 */
export function deferStart({ input, record }: StackFacts, run: Run, decision: StackDecision): StackDecision {
  const { stack, nowMs } = input
  const { status } = stack
  const { createRun: _, status: next, requeueAfterMs = Infinity, deleteRuns, events, ...actions } = decision
  if (!status || status.observedGeneration === stack.metadata.generation || run.spec.reason !== 'NewGeneration' || !isRoutine(run))
    return decision
  if (Object.keys(actions).length + deleteRuns.length + events.length > 0 || status.lastRun?.name === run.metadata.name) return decision
  if (!equalJson(recordOf(next), recordOf(status)) || record.plan) return decision
  const createdAtMs = decision.createRun ? nowMs : Date.parse(run.metadata.creationTimestamp)
  const inMs = createdAtMs + reportProgressAfterMs - nowMs
  // As in `coalesceProgress`, for a clock of the server that is ahead.
  if (inMs <= 0 || inMs > reportProgressAfterMs) return decision
  return { ...decision, status, requeueAfterMs: Math.min(requeueAfterMs, inMs) }
}

/** What a later decision could not fold from the Run. */
function recordOf({
  observedGeneration: _,
  conditions: _c,
  nextRunAt: _n,
  lastRun: _l,
  lastRunNumber: _r,
  ...rest
}: StackDecision['status']) {
  return rest
}
