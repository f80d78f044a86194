import { isEnded, phaseOf, type Run } from '../../api/index.ts'
import type { Destruction } from './destruction.ts'
import type { StackRecord } from './fold-runs.ts'
import { inputsOf, sameInputs } from './inputs.ts'
import { hasChanges, isDestroyPlan, isLost, mayHaveWritten } from './run-status.ts'

/**
 * The plan of destruction that awaits approval in a deletion: that of the newest such Run, which may be older than the deletion, so that a user
 * can approve the plan that was shown before it. It is void once a Run may have written: that has changed what there is to destroy. A lost
 * Destroy is repeated with the plan that was approved for it.
 */
export function pendingDestroyPlan(
  runs: readonly Run[],
  { inputs, version, configuration }: Pick<Destruction, 'inputs' | 'version' | 'configuration'>,
): StackRecord['plan'] {
  const run = runs.findLast(isDestroyPlan)
  if (!run?.status?.plan || phaseOf(run) !== 'Succeeded' || !hasChanges(run) || run.spec.stack.approval !== 'Manual') return undefined
  if (run.spec.configuration !== configuration || !sameInputs(inputsOf(run, version, 'execution'), inputs)) return undefined
  const { name: runName } = run.metadata
  const isVoid = runs.some(other => {
    if (other.spec.epoch <= run.spec.epoch) return false
    const isOfPlan = other.spec.approvedPlan?.runName === runName
    return isOfPlan ? isEnded(other) && !isLost(other) : mayHaveWritten(other)
  })
  if (isVoid) return undefined
  const { digest, add, change, destroy } = run.status.plan
  return { digest, runName, ...inputs, add, change, destroy }
}
