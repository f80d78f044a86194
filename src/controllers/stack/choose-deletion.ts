import { annotations, isMutating, phaseOf, type Run } from '../../api/index.ts'
import type { StateError } from './choose-next.ts'
import type { PlannedRun } from './choose-run.ts'
import { engineRecheckMs, lostRunLimit } from './constants.ts'
import type { StackFacts } from './facts.ts'
import { consecutiveLostRuns, endedAtMs, isLost, mayHaveWritten } from './run-status.ts'
import { retryDelayMs } from './settings.ts'

/** What the deletion of a Stack waits for while no Run of it is active. */
export type DeletionChoice =
  | { readonly kind: 'dependentsExist'; readonly dependents: readonly string[] }
  | { readonly kind: 'deletionProtected' }
  | { readonly kind: 'deletionSuspended' }
  | { readonly kind: 'deletionStateError'; readonly error: StateError }
  /** The Stack is from a backup, and no user has reviewed it. */
  | { readonly kind: 'deletionRestored' }
  | { readonly kind: 'resolvingDestroySource' }
  | { readonly kind: 'destroyCanceled'; readonly last: Run }
  /** The resources are destroyed, not before `planned.atMs`. */
  | { readonly kind: 'destroy'; readonly planned: PlannedRun; readonly isStalled: boolean }

/**
 * What a Stack that is being deleted needs next, when none of its Runs is active; undefined when nothing is left to destroy.
 * First the dependents are deleted, then the resources are destroyed. A Destroy that fails is retried without limit, with
 * backoff: only a user can decide to orphan the remaining resources.
 */
export function chooseDeletion(facts: StackFacts): DeletionChoice | undefined {
  const { input, runs, settings, inputs, request } = facts
  if (input.stack.spec.deletionProtection) return { kind: 'deletionProtected' }
  if (settings.orphanOnDelete || !hasResources(facts)) return undefined
  // Stacks of a cycle do not wait for each other.
  const dependents = input.dependents.filter(name => !input.cycle?.includes(name))
  if (dependents.length > 0) return { kind: 'dependentsExist', dependents }
  if (input.state?.error) return { kind: 'deletionStateError', error: input.state.error }
  if (facts.record.restored) return { kind: 'deletionRestored' }
  if (settings.suspended) return { kind: 'deletionSuspended' }
  if (!inputs) return { kind: 'resolvingDestroySource' }
  const last = runs.findLast(run => run.spec.type === 'Destroy')
  if (last && !request && last.spec.stackRef.generation === inputs.generation) return repeatDestroy(facts, last)
  const planned: PlannedRun = { type: 'Destroy', reason: 'Deleted', atMs: input.nowMs, ...(request && { request: request.value }) }
  return { kind: 'destroy', planned, isStalled: false }
}

function repeatDestroy({ input, record, runs, settings }: StackFacts, last: Run): DeletionChoice {
  if (phaseOf(last) === 'Canceled') return { kind: 'destroyCanceled', last }
  if (isLost(last)) {
    const count = consecutiveLostRuns(runs, run => run.spec.type === 'Destroy')
    const atMs = count < lostRunLimit ? input.nowMs : endedAtMs(last) + retryDelayMs(settings, count - lostRunLimit + 1)
    const recovery = { reason: 'RecoveredFrom', recoveredFrom: last.metadata.name, after: { kind: 'lost', run: last, count } } as const
    return { kind: 'destroy', planned: { type: 'Destroy', ...recovery, atMs }, isStalled: false }
  }
  const failures = record.failures ?? 1
  const isRetryable = last.status?.retryable !== false
  const retryMs = isRetryable ? retryDelayMs(settings, Math.max(1, failures)) : settings.retryMaxMs
  const atMs = endedAtMs(last) + (last.status?.reason === 'EngineNotFound' ? engineRecheckMs : retryMs)
  const planned: PlannedRun = { type: 'Destroy', reason: 'Retry', atMs, after: { kind: 'failed', run: last } }
  return { kind: 'destroy', planned, isStalled: !isRetryable || failures > settings.retryLimit }
}

/** False when the Stack never created or imported anything, or the last mutating Run was a Destroy that succeeded. */
function hasResources({ input, record, runs }: StackFacts): boolean {
  const last = runs.findLast(run => isMutating(run.spec.type))
  if (last?.spec.type === 'Destroy' && phaseOf(last) === 'Succeeded') return false
  const isImported = input.stack.metadata.annotations?.[annotations.importedState] !== undefined
  return isImported || record.applied !== undefined || (record.resources ?? 0) > 0 || runs.some(mayHaveWritten)
}
