import { annotations, isEnded, isMutating, type Run, type Stack, type StackStatus } from '../../api/index.ts'
import type { Want } from './choose-run.ts'
import { type ConditionUpdate, formatActive, formatFailed, formatTime, pausedCondition, reconcilingCondition } from './conditions.ts'
import { engineRecheckMs, lostLimit } from './limits.ts'
import { endedAtMs, type Inputs, isLost, lostInARow, mayHaveWritten, phaseOf } from './run-facts.ts'
import { backoffMs, type Settings } from './settings.ts'

export type DeletionInput = {
  readonly stack: Stack
  readonly status: StackStatus
  readonly runs: readonly Run[]
  readonly settings: Settings
  /** What a Destroy Run would work with; undefined while the source is not resolved and nothing was ever applied. */
  readonly inputs: Inputs | undefined
  readonly dependents: readonly string[]
  readonly nowMs: number
}

export type DeletionStep =
  /** Nothing is left to do: the Stack may go. */
  | { readonly kind: 'release' }
  | { readonly kind: 'wait'; readonly say: ConditionUpdate; readonly cancelRun?: string }
  | { readonly kind: 'run'; readonly want: Want; readonly say: ConditionUpdate }

/**
 * The next step on the way out of a Stack that is being deleted: the active Run ends (a Plan, and what no worker has
 * yet, is canceled; an Apply finishes), dependents go first, what was made is destroyed, and only then the Stack goes.
 * A Destroy that fails is tried again for ever, ever slower: only a person can say that its rest may stay.
 */
export function decideDeletion(input: DeletionInput): DeletionStep {
  const { stack, status, runs, settings, inputs, dependents, nowMs } = input
  const active = runs.find(run => !isEnded(run))
  if (active) {
    const isDestroy = active.spec.type === 'Destroy'
    const mayCancel = !isDestroy && (active.spec.type === 'Plan' || active.spec.workerName === undefined)
    const say = reconcilingCondition('Deleting', isDestroy ? formatActive(active) : `Deletion waits: ${formatActive(active)}`)
    return { kind: 'wait', say, ...(mayCancel && !active.spec.cancel && { cancelRun: active.metadata.name }) }
  }
  if (settings.orphan || !isSomethingLeft(status, runs)) return { kind: 'release' }
  if (dependents.length > 0) {
    const say = reconcilingCondition(
      'DependentsExist',
      `Deletion waits until the Stacks that depend on it are gone: ${dependents.join(', ')}`,
    )
    return { kind: 'wait', say }
  }
  if (settings.suspended) {
    const message = 'Deletion waits: the Stack is suspended. Set spec.suspend to false, or spec.deletion to Orphan to leave what it made'
    return { kind: 'wait', say: pausedCondition('Suspended', message) }
  }
  if (!inputs) return { kind: 'wait', say: reconcilingCondition('Deleting', 'Deletion waits until the source is resolved') }

  const request = stack.metadata.annotations?.[annotations.requestedRun]
  const isRequested = request !== undefined && request !== '' && request !== status.handledRequest
  const last = runs.findLast(run => run.spec.type === 'Destroy')
  if (isRequested || !last || last.spec.stackRef.generation !== inputs.generation) {
    const want: Want = { type: 'Destroy', reason: 'Deleted', atMs: nowMs, ...(isRequested && { request }) }
    return { kind: 'run', want, say: reconcilingCondition('Deleting', 'The Stack is being deleted') }
  }
  const { name } = last.metadata
  if (phaseOf(last) === 'Canceled') {
    const hint = `ask for it again: oarlock run ${stack.metadata.name}, or set spec.deletion to Orphan to leave what it made`
    const word = { reason: 'RunCanceled', message: `Deletion waits: Run ${name} was canceled; ${hint}` }
    return { kind: 'wait', say: { ready: { status: 'False', ...word }, stalled: word } }
  }
  if (isLost(last)) {
    const lost = lostInARow(runs, run => run.spec.type === 'Destroy')
    const atMs = lost < lostLimit ? nowMs : endedAtMs(last) + backoffMs(settings, lost - lostLimit + 1)
    const say = reconcilingCondition('Deleting', `Run ${name} was lost. Trying again at ${formatTime(atMs)}`)
    return { kind: 'run', want: { type: 'Destroy', reason: 'RecoveredFrom', recoveredFrom: name, atMs }, say }
  }
  const failures = status.failures ?? 1
  const reason = last.status?.reason ?? 'DestroyFailed'
  const isFinal = last.status?.retryable === false || failures > settings.retryLimit
  const waitMs =
    reason === 'EngineNotFound'
      ? engineRecheckMs
      : last.status?.retryable === false
        ? settings.retryMaxMs
        : backoffMs(settings, Math.max(1, failures))
  const atMs = endedAtMs(last) + waitMs
  const message = `Deletion waits: ${formatFailed(last)} Trying again at ${formatTime(atMs)}; set spec.deletion to Orphan to leave what is left`
  const word = { reason, message }
  const say: ConditionUpdate = { ready: { status: 'False', ...word }, ...(isFinal ? { stalled: word } : { reconciling: word }) }
  return { kind: 'run', want: { type: 'Destroy', reason: 'Retry', atMs }, say }
}

/** False when the Stack never made anything, or the last thing that happened was a Destroy that succeeded. */
function isSomethingLeft(status: StackStatus, runs: readonly Run[]): boolean {
  const last = runs.findLast(run => isMutating(run.spec.type))
  if (last?.spec.type === 'Destroy' && phaseOf(last) === 'Succeeded') return false
  return status.applied !== undefined || (status.resources ?? 0) > 0 || runs.some(mayHaveWritten)
}
