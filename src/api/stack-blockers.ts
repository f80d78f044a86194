import { findCondition, isConditionTrue } from '../kubernetes/object/index.ts'
import { isStateError } from './expected-state-version.ts'
import { annotations } from './names.ts'
import { oarlockCommand } from './oarlock-command.ts'
import { isRunFailureReason } from './run-failure-reasons.ts'
import type { RunOptions } from './run-options.ts'
import type { RequestType } from './run-request.ts'
import type { Stack } from './stack.ts'
import type { ApprovalReason } from './stack-conditions.ts'

/** Why a user cannot do something with a Stack now: a clause about "the Stack", and what to do next. The console and the command line show the same. */
export type Blocker = { readonly text: string; readonly remedy?: string }

export const formatBlocker = ({ text, remedy }: Blocker): string => (remedy === undefined ? text : `${text}: ${remedy}`)

/** What the stores have of the state of a Stack. */
export type KnownState = {
  /** The state is missing or too old. */
  readonly error?: { readonly reason: string; readonly message: string } | undefined
  /** Whether an update has not completed, or its journal could not be read. */
  readonly hasJournal: boolean
}

/** A Run that a user requests. */
export type RequestedKind = { readonly type: RequestType; readonly options?: RunOptions | undefined }

const suspended = ({ metadata }: Stack): Blocker => ({
  text: 'the Stack is suspended',
  remedy: `resume it first: ${oarlockCommand('resume', metadata)}`,
})

const restored = ({ metadata }: Stack): Blocker => ({
  text: 'the Stack was restored from a backup and waits for its review',
  remedy: `show what differs with "${oarlockCommand('plan', metadata)}", then use "${oarlockCommand('restore accept', metadata)}"`,
})

/**
 * Why a Run that a user requests would not be executed, or would do something else than its name says; undefined if nothing speaks against it.
 * @param state undefined if the user may not read it: then the Run is requested, and the controller decides.
 */
export function runBlocker(stack: Stack, { type, options }: RequestedKind, state: KnownState | undefined): Blocker | undefined {
  const { metadata, spec, status } = stack
  if (spec.suspend) return suspended(stack)
  if (metadata.deletionTimestamp !== undefined) return deletionRunBlocker(stack, { type, options })
  if (status?.restored && (type === 'apply' || type === 'refresh')) return restored(stack)
  const stalled = findCondition(status?.conditions, 'Stalled')
  return state && reportsStateError(stack) && isStateWrong(stack, state) ? { text: stalled?.message ?? '' } : undefined
}

/**
 * A Run of a Stack that is being deleted destroys its resources, or plans that, whatever type was requested: it is possible only where the deletion waits for a
 * user or for its next attempt, and a plan only where a Run certainly plans.
 */
function deletionRunBlocker(stack: Stack, { type, options }: RequestedKind): Blocker | undefined {
  const { metadata, spec, status } = stack
  const text = 'the Stack is being deleted'
  if (spec.deletion === 'Orphan') return { text, remedy: 'its resources remain, and no Run follows' }
  if (type === 'refresh' || options !== undefined)
    return { text, remedy: 'a Run destroys all of its resources, and cannot do anything else' }
  if (status?.observedGeneration !== metadata.generation || !isWaitingDeletion(stack))
    return { text, remedy: `"${oarlockCommand('describe stack', metadata)}" shows what its deletion waits for` }
  if (type !== 'apply' && !plansDestruction(stack))
    return {
      text,
      remedy: `a Run may destroy its resources without an approval; request one with "${oarlockCommand('run', metadata)}"`,
    }
  return undefined
}

const waitingReasons: ReadonlySet<string> = new Set([
  'AwaitingApproval',
  'PlanRejected',
  'RunCanceled',
  'PersistentFailure',
  'WorkerCrashed',
])

/** Whether the deletion waits for a decision about a plan, for a Run that a user requests, or for the next attempt after a failure. */
function isWaitingDeletion({ status }: Stack): boolean {
  const reason = findCondition(status?.conditions, 'Ready')?.reason
  if (isStateError(reason) || reason === 'StateLocked') return false
  // Between two attempts.
  if (reason === 'Deleting' && status?.lastRun?.type === 'Destroy' && status.lastRun.phase === 'Lost') return true
  return reason !== undefined && (waitingReasons.has(reason) || isRunFailureReason(reason))
}

/** Whether the next Run of the deletion plans the destruction, as far as the Stack shows it, and not its namespace only. */
function plansDestruction({ metadata, spec, status }: Stack): boolean {
  return (
    spec.approval === 'Manual' ||
    metadata.annotations?.[annotations.destroyPlan] !== undefined ||
    isConditionTrue(status?.conditions, 'AwaitingApproval') ||
    findCondition(status?.conditions, 'Stalled')?.reason === 'PlanRejected'
  )
}

/** What a requested Run does with a Stack that is being deleted; undefined for another Stack. */
export function deletionRunEffect(stack: Stack): string | undefined {
  if (stack.metadata.deletionTimestamp === undefined) return undefined
  return plansDestruction(stack)
    ? 'The Stack is being deleted: this plans its destruction again, and nothing is destroyed before that plan is approved or confirmed.'
    : 'The Stack is being deleted: this destroys its real resources, after an approval where its namespace requires one.'
}

/** Whether the deletion waits for the confirmation of a user who may destroy the Stack, and not for an approval. */
export function isConfirmedDeletion({ status }: Pick<Stack, 'status'>): boolean {
  const condition = findCondition(status?.conditions, 'AwaitingApproval')
  const required: ApprovalReason = 'ConfirmationRequired'
  return condition?.status === 'True' && condition.reason === required
}

/** Why no plan of the Stack can be approved or rejected now. */
export function decisionBlocker(stack: Stack): Blocker | undefined {
  const { metadata, spec, status } = stack
  if (isConfirmedDeletion(stack))
    return {
      text: 'the deletion of the Stack needs no approval, but the confirmation of the user who destroys it',
      remedy: `show and confirm its plan: ${oarlockCommand('destroy', metadata)}`,
    }
  if (status?.plan && isConditionTrue(status.conditions, 'AwaitingApproval')) return undefined
  const remedy =
    spec.approval === 'Manual'
      ? `"${oarlockCommand('describe stack', metadata)}" shows its state`
      : 'only a Stack with spec.approval Manual, or in a namespace with the label oarlock.dev/approval, awaits approval'
  return { text: 'the Stack has no plan awaiting approval', remedy }
}

/** What the destruction of a Stack depends on besides the Stack. */
export type DestructionFacts = {
  /** Names of the Stacks that depend on it, and that are not destroyed together with it. */
  readonly dependents: readonly string[]
  readonly isNamespaceTerminating: boolean
  /** Undefined if the user may not read it: then what the status reports counts. */
  readonly state?: KnownState | undefined
  /** The user who holds the lock of the state. */
  readonly lockedBy?: string | undefined
}

/** Everything that blocks the destruction of a Stack that is not being deleted, except missing rights: it would wait, and its deletion cannot be taken back. */
export function destructionBlockers(stack: Stack, facts: DestructionFacts): Blocker[] {
  const { metadata, spec, status } = stack
  const found: Blocker[] = []
  if (spec.deletionProtection)
    found.push({ text: 'spec.deletionProtection of the Stack is true', remedy: 'set it to false to delete the Stack' })
  found.push(...dependentsBlockers(stack, facts.dependents))
  if (spec.suspend) found.push(suspended(stack))
  if (status?.restored) found.push(restored(stack))
  if (facts.isNamespaceTerminating)
    found.push({
      text: `namespace ${metadata.namespace} is being deleted and accepts no new Run`,
      remedy: 'set spec.deletion to Orphan to keep the resources',
    })
  const stateError = stateErrorOf(stack, facts.state)
  if (stateError !== undefined) {
    const force = oarlockCommand('delete', { name: `stack/${metadata.name}`, ...namespaceOf(stack) })
    found.push({ text: `${stateError}; "${force} --force" deletes the Stack and leaves its resources` })
  }
  if (facts.lockedBy !== undefined)
    found.push({
      text: `the state is locked by ${facts.lockedBy}`,
      remedy: `wait for the holder, or release the lock: ${oarlockCommand('state unlock', metadata)}`,
    })
  return found
}

/** A Stack is destroyed after those that depend on it. */
export function dependentsBlockers(stack: Stack, dependents: readonly string[]): Blocker[] {
  if (dependents.length === 0) return []
  const all = oarlockCommand('destroy', { name: '--all', ...namespaceOf(stack) })
  return [{ text: `Stacks depend on it: ${dependents.join(', ')}; destroy them first, or all Stacks of the namespace with: ${all}` }]
}

/**
 * Why a user cannot begin the destruction of a Stack, or confirm another plan of it, as far as the Stack shows it. A deletion that executes only a confirmed plan
 * waits for a user when another plan was made, and when its Run was canceled.
 */
export function destroyBlocker(stack: Stack): Blocker | undefined {
  const { metadata, status } = stack
  if (metadata.deletionTimestamp === undefined) return destructionBlockers(stack, { dependents: [], isNamespaceTerminating: false })[0]
  if (isConfirmedDeletion(stack)) return undefined
  const isConfirmed = metadata.annotations?.[annotations.destroyPlan] !== undefined && stack.spec.approval !== 'Manual'
  const isCanceled = findCondition(status?.conditions, 'Stalled')?.reason === 'RunCanceled'
  if (isConfirmed && isCanceled) return runBlocker(stack, { type: 'plan-destroy' }, undefined)
  return { text: 'the Stack is being deleted', remedy: `"${oarlockCommand('describe stack', metadata)}" shows what its deletion waits for` }
}

/** Whether the status reports an error of the state, which may have been repaired since. */
export function reportsStateError({ status }: Pick<Stack, 'status'>): boolean {
  const stalled = findCondition(status?.conditions, 'Stalled')
  return stalled?.status === 'True' && isStateError(stalled.reason)
}

/** Whether the stored state still has the error. */
function isStateWrong({ status }: Stack, { error, hasJournal }: KnownState): boolean {
  const isUnreadable = findCondition(status?.conditions, 'Stalled')?.reason === 'JournalUnreadable'
  return error !== undefined || (isUnreadable && hasJournal)
}

function stateErrorOf(stack: Stack, state: KnownState | undefined): string | undefined {
  if (state?.error) return `${state.error.reason}: ${state.error.message}`
  if (!reportsStateError(stack) || (state && !isStateWrong(stack, state))) return undefined
  const { reason, message } = findCondition(stack.status?.conditions, 'Stalled')!
  return `${reason}: ${message}`
}

const namespaceOf = ({ metadata: { namespace } }: Stack) => (namespace === undefined ? {} : { namespace })
