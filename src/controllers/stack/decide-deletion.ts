import { annotations, isEnded, isMutating, oarlockCommand, type Run, type Stack, type StackStatus } from '../../api/index.ts'
import type { PlannedRun } from './choose-run.ts'
import { reconcilingCondition, type StackConditions, stalledCondition, suspendedCondition } from './conditions.ts'
import { engineRecheckMs, lostRunLimit } from './constants.ts'
import type { Inputs } from './inputs.ts'
import { formatActiveRun, formatFailure, formatTime } from './messages.ts'
import { consecutiveLostRuns, endedAtMs, isLost, mayHaveWritten, phaseOf } from './run-status.ts'
import { retryDelayMs, type Settings } from './settings.ts'

export type DeletionInput = {
  readonly stack: Stack
  readonly status: StackStatus
  readonly runs: readonly Run[]
  readonly settings: Settings
  /** The inputs of a Destroy Run; undefined while the source is not resolved and nothing was ever applied. */
  readonly inputs: Inputs | undefined
  readonly dependents: readonly string[]
  readonly nowMs: number
}

export type DeletionStep =
  /** Nothing is left to destroy: the finalizer can be removed. */
  | { readonly kind: 'release' }
  | { readonly kind: 'wait'; readonly conditions: StackConditions; readonly cancelRun?: string }
  | { readonly kind: 'run'; readonly planned: PlannedRun; readonly conditions: StackConditions }

const orphanHint = 'set spec.deletion to Orphan to keep the resources'

/**
 * The next step of a Stack that is being deleted. First the active Run ends: a Plan and a Run without a worker are canceled,
 * an Apply finishes. Then the dependents are deleted, then the resources are destroyed, then the finalizer is removed.
 * A Destroy that fails is retried without limit, with backoff: only a user can decide to orphan the remaining resources.
 */
export function decideDeletion(input: DeletionInput): DeletionStep {
  const { stack, status, runs, settings, inputs, dependents, nowMs } = input
  const active = runs.find(run => !isEnded(run))
  if (active) {
    const isDestroy = active.spec.type === 'Destroy'
    const isCancelable = !isDestroy && (active.spec.type === 'Plan' || active.spec.workerName === undefined)
    const message = isDestroy ? formatActiveRun(active) : `Deletion is waiting: ${formatActiveRun(active)}`
    const conditions = reconcilingCondition('Deleting', message)
    return { kind: 'wait', conditions, ...(isCancelable && !active.spec.cancel && { cancelRun: active.metadata.name }) }
  }
  if (settings.orphanOnDelete || !hasResources(status, runs)) return { kind: 'release' }
  if (dependents.length > 0) {
    const message = `Deletion is waiting until the dependent Stacks are deleted: ${dependents.join(', ')}`
    return { kind: 'wait', conditions: reconcilingCondition('DependentsExist', message) }
  }
  if (settings.suspended) {
    const message = `Deletion is waiting: the Stack is suspended. Set spec.suspend to false to destroy the resources, or ${orphanHint}`
    return { kind: 'wait', conditions: suspendedCondition(message) }
  }
  if (!inputs) {
    return { kind: 'wait', conditions: reconcilingCondition('Deleting', 'Deletion is waiting until the source is resolved') }
  }

  const request = stack.metadata.annotations?.[annotations.requestedRun]
  const isRequested = request !== undefined && request !== '' && request !== status.handledRequest
  const last = runs.findLast(run => run.spec.type === 'Destroy')
  if (isRequested || !last || last.spec.stackRef.generation !== inputs.generation) {
    const planned: PlannedRun = { type: 'Destroy', reason: 'Deleted', atMs: nowMs, ...(isRequested && { request }) }
    return { kind: 'run', planned, conditions: reconcilingCondition('Deleting', 'The Stack is being deleted') }
  }
  return retryDestroy(input, last)
}

function retryDestroy({ stack, status, runs, settings, nowMs }: DeletionInput, last: Run): DeletionStep {
  const { name } = last.metadata
  if (phaseOf(last) === 'Canceled') {
    const message = `Deletion is waiting: Run ${name} was canceled; request another Run with ${oarlockCommand('run', stack.metadata)}, or ${orphanHint}`
    return { kind: 'wait', conditions: stalledCondition('RunCanceled', message) }
  }
  if (isLost(last)) {
    const lost = consecutiveLostRuns(runs, run => run.spec.type === 'Destroy')
    const atMs = lost < lostRunLimit ? nowMs : endedAtMs(last) + retryDelayMs(settings, lost - lostRunLimit + 1)
    const conditions = reconcilingCondition('Deleting', `Run ${name} was lost. Next attempt at ${formatTime(atMs)}`)
    return { kind: 'run', planned: { type: 'Destroy', reason: 'RecoveredFrom', recoveredFrom: name, atMs }, conditions }
  }
  const failures = status.failures ?? 1
  const reason = last.status?.reason ?? 'DestroyFailed'
  const isRetryable = last.status?.retryable !== false
  const delayMs =
    reason === 'EngineNotFound' ? engineRecheckMs : isRetryable ? retryDelayMs(settings, Math.max(1, failures)) : settings.retryMaxMs
  const atMs = endedAtMs(last) + delayMs
  const message = `Deletion is waiting: ${formatFailure(last)}. Next attempt at ${formatTime(atMs)}; ${orphanHint} that remain`
  const isStalled = !isRetryable || failures > settings.retryLimit
  const conditions = (isStalled ? stalledCondition : reconcilingCondition)(reason, message)
  return { kind: 'run', planned: { type: 'Destroy', reason: 'Retry', atMs }, conditions }
}

/** False when the Stack never created anything, or the last mutating Run was a Destroy that succeeded. */
function hasResources(status: StackStatus, runs: readonly Run[]): boolean {
  const last = runs.findLast(run => isMutating(run.spec.type))
  if (last?.spec.type === 'Destroy' && phaseOf(last) === 'Succeeded') return false
  return status.applied !== undefined || (status.resources ?? 0) > 0 || runs.some(mayHaveWritten)
}
