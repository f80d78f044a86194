import { type driftedReasons, phaseOf, type Run, type RunStatus } from '../../api/index.ts'
import { type Condition, findCondition, setCondition } from '../../kubernetes/object/index.ts'
import { formatPlanned } from './messages.ts'
import { mayHaveApplied } from './run-status.ts'

/** The condition Drifted as a Run leaves it. */
export type Drift = Pick<Condition, 'status' | 'message'> & { readonly reason: (typeof driftedReasons)[Condition['status']][number] }

/** The condition that is reported; an earlier version reported that there is no drift with another reason. */
export function presentDrifted(conditions: readonly Condition[] | undefined): Condition | undefined {
  const drifted = findCondition(conditions, 'Drifted')
  return drifted?.status === 'False' ? { ...drifted, reason: 'NoDrift' } : drifted
}

export const driftFound = ({ metadata }: Run, counts: Pick<NonNullable<RunStatus['plan']>, 'add' | 'change' | 'destroy'>): Drift => ({
  status: 'True',
  reason: 'DriftFound',
  message: `Run ${metadata.name} found drift: ${formatPlanned(counts)}`,
})

export const noDrift = ({ metadata }: Run): Drift => ({
  status: 'False',
  reason: 'NoDrift',
  message: `The resources matched what is applied when Run ${metadata.name} ended`,
})

/** After an Apply that ended halfway, the resources are unknown until the next comparison. */
export function driftAfterFailure(run: Run): Drift | undefined {
  const phase = phaseOf(run)
  if (phase === 'Succeeded' || run.spec.type !== 'Apply' || !mayHaveApplied(run)) return undefined
  const ended = phase === 'Canceled' ? 'was canceled' : phase === 'Lost' ? 'was lost' : 'failed'
  const message = `Run ${run.metadata.name} ${ended} and may have applied a part; the resources have not been compared since`
  return { status: 'Unknown', reason: 'ApplyIncomplete', message }
}

export function driftedCondition(
  previous: Condition | undefined,
  drift: Drift,
  observedGeneration: number,
  nowMs: number,
): Condition | undefined {
  return setCondition(previous && [previous], { type: 'Drifted', ...drift, observedGeneration }, nowMs)[0]
}
