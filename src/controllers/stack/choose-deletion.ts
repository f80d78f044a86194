import { annotations, isMutating, isRejected, phaseOf, type Run, type Stack } from '../../api/index.ts'
import { approvedPlan } from './approval.ts'
import type { StateError } from './choose-next.ts'
import type { PlannedRun } from './choose-run.ts'
import { lostRunLimit, missingProgramReasons, programRecheckMs, stateLockRetryMs } from './constants.ts'
import { consecutiveCrashes, crashLimit } from './crashed-workers.ts'
import type { UserLock } from './decision.ts'
import type { StackFacts } from './facts.ts'
import type { StackRecord } from './fold-runs.ts'
import { specVersionOf } from './inputs.ts'
import { isPlanRejected } from './rejection.ts'
import {
  consecutiveLostRuns,
  endedAtMs,
  hasChanges,
  isLost,
  isOfDeletion,
  isOutdatedPlan,
  isStateLocked,
  mayHaveWritten,
} from './run-status.ts'
import { retryDelayMs, type Settings } from './settings.ts'

/** What the deletion of a Stack waits for while no Run of it is active. */
export type DeletionChoice =
  | { readonly kind: 'dependentsExist'; readonly dependents: readonly string[] }
  | { readonly kind: 'deletionProtected' }
  | { readonly kind: 'deletionSuspended' }
  | { readonly kind: 'deletionStateError'; readonly error: StateError }
  /** A user holds the lock of the state. */
  | { readonly kind: 'deletionStateLocked'; readonly lock: UserLock }
  /** The Stack is from a backup, and no user has reviewed it. */
  | { readonly kind: 'deletionRestored' }
  | { readonly kind: 'resolvingDestroySource' }
  /** The plan in the record waits for approval by a user. */
  | { readonly kind: 'awaitDestroyApproval' }
  /** A user has rejected the plan in the record. */
  | { readonly kind: 'destroyPlanRejected' }
  | { readonly kind: 'destroyCanceled'; readonly last: Run }
  /** The resources are destroyed, or that is planned for approval, not before `planned.atMs`. */
  | { readonly kind: 'destroy'; readonly planned: PlannedRun; readonly isStalled: boolean }

/**
 * What a Stack that is being deleted needs next, when none of its Runs is active; undefined when nothing is left to destroy.
 * First the dependents are deleted, then the resources are destroyed: where approval is required by a plan that a user has approved. A Destroy that fails is retried without limit, with
 * backoff: only a user can decide to orphan the remaining resources.
 */
export function chooseDeletion(facts: StackFacts): DeletionChoice | undefined {
  const choice = chooseUnlocked(facts)
  if (choice?.kind !== 'destroy') return choice
  const { planned } = choice
  const lock = isMutating(planned.type) ? facts.input.state?.lock : undefined
  if (lock) return { kind: 'deletionStateLocked', lock }
  const isResolved = facts.destruction()?.isResolved ?? false
  return isResolved || planned.atMs > facts.input.nowMs ? choice : { kind: 'resolvingDestroySource' }
}

function chooseUnlocked(facts: StackFacts): DeletionChoice | undefined {
  const { input, runs, settings, inputs, request, record, destruction } = facts
  if (input.stack.spec.deletionProtection) return { kind: 'deletionProtected' }
  if (settings.orphanOnDelete || !hasResources(input.stack, record, runs)) return undefined
  // Stacks of a cycle do not wait for each other.
  const dependents = input.dependents.filter(name => !input.cycle?.includes(name))
  if (dependents.length > 0) return { kind: 'dependentsExist', dependents }
  if (input.state?.error) return { kind: 'deletionStateError', error: input.state.error }
  if (facts.record.restored) return { kind: 'deletionRestored' }
  if (settings.suspended) return { kind: 'deletionSuspended' }
  if (!inputs) return { kind: 'resolvingDestroySource' }
  const last = runs.findLast(run => isOfDeletion(run) && !isRejected(run))
  const isSame = last?.spec.stackRef.generation === inputs.generation && last.spec.configuration === destruction()?.configuration
  const repeated = isSame && !isReplaced(last) ? last : undefined
  if (settings.manualApproval && record.plan && !request) return chooseWithPlan(facts, repeated)
  if (repeated && !request && !isPlanOfDeletion(repeated, facts)) return repeatDestroy(facts, repeated)
  // A plan that found nothing to destroy needs no approval.
  if (repeated && !request && settings.manualApproval && !hasChanges(repeated)) return undefined
  const planned = { ...kindOfRun(settings), reason: 'Deleted', atMs: input.nowMs, ...(request && { request: request.value }) }
  return { kind: 'destroy', planned, isStalled: false }
}

/** Where approval is required, the destruction is planned first. */
const kindOfRun = ({ manualApproval }: Settings): Pick<PlannedRun, 'type' | 'planMode'> =>
  manualApproval ? { type: 'Plan', planMode: 'Destroy' } : { type: 'Destroy' }

/** True for a Run that the controller has canceled because of a change, and that another one follows. */
const isReplaced = (run: Run): boolean => phaseOf(run) === 'Canceled' && run.spec.cancelReason === 'Outdated'

/** True for a plan that has succeeded, and for one that only matters where approval is required. */
const isPlanOfDeletion = (run: Run, { settings }: StackFacts): boolean =>
  run.spec.type === 'Plan' && (phaseOf(run) === 'Succeeded' || !settings.manualApproval)

function chooseWithPlan(facts: StackFacts, last: Run | undefined): DeletionChoice {
  if (isPlanRejected(facts.record)) return { kind: 'destroyPlanRejected' }
  const approved = approvedPlan(facts)
  if (!approved) return { kind: 'awaitDestroyApproval' }
  const recovery = last && isLost(last) ? recoverLost(facts, last) : undefined
  const planned: PlannedRun = { type: 'Destroy', reason: 'Approved', atMs: facts.input.nowMs, approvedPlan: approved, ...recovery }
  return { kind: 'destroy', planned, isStalled: recovery !== undefined && isCrashing(facts) }
}

const isCrashing = ({ input, runs }: StackFacts): boolean =>
  consecutiveCrashes(runs, specVersionOf(input.stack), isOfDeletion).length >= crashLimit

function recoverLost(facts: StackFacts, last: Run): Omit<PlannedRun, 'type'> {
  const { input, runs, settings } = facts
  const count = consecutiveLostRuns(runs, isOfDeletion)
  const delayMs = isCrashing(facts) ? settings.retryMaxMs : count < lostRunLimit ? 0 : retryDelayMs(settings, count - lostRunLimit + 1)
  const atMs = delayMs === 0 ? input.nowMs : endedAtMs(last) + delayMs
  return { reason: 'RecoveredFrom', recoveredFrom: last.metadata.name, atMs, after: { kind: 'lost', run: last, count } }
}

function repeatDestroy(facts: StackFacts, last: Run): DeletionChoice {
  const { input, record, settings } = facts
  if (phaseOf(last) === 'Canceled') return { kind: 'destroyCanceled', last }
  const kind = kindOfRun(settings)
  if (isLost(last)) return { kind: 'destroy', planned: { ...kind, ...recoverLost(facts, last) }, isStalled: isCrashing(facts) }
  if (isOutdatedPlan(last)) return { kind: 'destroy', planned: { ...kind, reason: 'PlanOutdated', atMs: input.nowMs }, isStalled: false }
  if (isStateLocked(last)) {
    const planned: PlannedRun = {
      ...{ ...kind, reason: 'Retry', atMs: endedAtMs(last) + stateLockRetryMs },
      after: { kind: 'stateLocked', run: last },
    }
    return { kind: 'destroy', planned, isStalled: false }
  }
  const failures = record.failures ?? 1
  const isRetryable = last.status?.retryable !== false
  const retryMs = isRetryable ? retryDelayMs(settings, Math.max(1, failures)) : settings.retryMaxMs
  const atMs = endedAtMs(last) + (missingProgramReasons.has(last.status?.reason) ? programRecheckMs : retryMs)
  const planned: PlannedRun = { ...kind, reason: 'Retry', atMs, after: { kind: 'failed', run: last } }
  return { kind: 'destroy', planned, isStalled: !isRetryable || failures > settings.retryLimit }
}

/** False when the Stack never created or imported anything, or the last mutating Run was a Destroy that succeeded. `runs` are its own, oldest first. */
export function hasResources({ metadata }: Pick<Stack, 'metadata'>, record: StackRecord, runs: readonly Run[]): boolean {
  const last = runs.findLast(run => isMutating(run.spec.type))
  if (last?.spec.type === 'Destroy' && phaseOf(last) === 'Succeeded') return false
  const isImported = metadata.annotations?.[annotations.importedState] !== undefined
  const isStored = (record.stateVersion ?? 0) > 0
  return isImported || isStored || record.applied !== undefined || (record.resources ?? 0) > 0 || runs.some(mayHaveWritten)
}
