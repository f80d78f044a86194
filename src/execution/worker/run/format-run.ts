import { formatRunOptions, type Run } from '../../../api/index.ts'
import type { PlanResult } from '../../engine/index.ts'
import type { RunResult } from './run-result.ts'

/** The first line of a Run's log. */
export function formatStart({ metadata, spec }: Run): string {
  const options = spec.options ? ` (${formatRunOptions(spec.options)})` : ''
  return `Run ${metadata.name}: ${spec.type}${options} of Stack ${metadata.namespace}/${spec.stackRef.name} at revision ${spec.revision}, trigger ${spec.reason}`
}

/** Lines of a Run's log where a phase begins. The first phase begins with the log. */
export const phaseLines = { planning: 'Planning', applying: 'Applying' } as const

/**
 * What the plan of this Run contains; `prefix` is `would be ` for a plan that is not applied. A refresh removes from the state what no longer
 * exists; it destroys nothing.
 */
export function formatPlan({ spec }: Run, { add, change, destroy, hasChanges }: PlanResult, prefix: '' | 'would be '): string {
  if (!hasChanges) return 'no changes'
  if (spec.type === 'Refresh' || spec.planMode === 'Refresh')
    return `${add} ${prefix}added, ${change} ${prefix}changed, ${destroy} ${prefix}removed, only in the state`
  return `${add} ${prefix}added, ${change} ${prefix}changed, ${destroy} ${prefix}destroyed`
}

/** The last line of a Run's log, such as `Failed: Timeout: …`. The message of a canceled Run is complete without its phase. */
export function formatResult({ phase, reason, message }: RunResult): string {
  if (phase === 'Canceled' && message) return message
  return [phase, reason, message].filter(Boolean).join(': ')
}
