import { oarlockCommand, type Run } from '../../api/index.ts'
import type { DeletionChoice } from './choose-deletion.ts'
import {
  awaitingApprovalCondition,
  reconcilingCondition,
  type StackConditions,
  stalledCondition,
  suspendedCondition,
} from './conditions.ts'
import { differsFromPresent } from './destruction.ts'
import { type StackFacts, sourceError } from './facts.ts'
import { approvalReason, formatAwaitingApproval } from './format-approval.ts'
import { failureReason, formatFailure, formatTime } from './messages.ts'
import { reconcilingWith, sourceErrorConditions } from './outlook-conditions.ts'
import { formatPersistent, persistentRunFailure } from './persistent-failure.ts'
import { restoredConditions, stateErrorConditions, stateLockedConditions } from './recovery-conditions.ts'
import { formatRejected } from './rejection.ts'

const orphanHint = 'set spec.deletion to Orphan to keep the resources'

/** A change of the source does not affect a Destroy, which uses the one that was applied last, unless that is requested. */
function formatSource({ destruction: readDestruction, input }: StackFacts, run: Run): string {
  const destruction = run.spec.configuration === 'Applied' ? readDestruction() : undefined
  if (!destruction || !differsFromPresent(destruction, input)) return ''
  const { name, namespace } = input.stack.metadata
  return (
    `it uses the source and inputs that Run ${destruction.appliedBy?.metadata.name} applied: to use the present ones, ` +
    `oarlock destroy ${name} -n ${namespace} --use-current-source; `
  )
}

/** The conditions of a Stack that is being deleted, while no Run is active. */
export function deletionConditions(facts: StackFacts, choice: DeletionChoice): StackConditions {
  const { input } = facts
  switch (choice.kind) {
    case 'dependentsExist': {
      const message = `Deletion is waiting until the dependent Stacks are deleted: ${choice.dependents.join(', ')}`
      return reconcilingCondition('DependentsExist', message)
    }
    case 'deletionStateError':
      return stateErrorConditions(input.stack, choice.error)
    case 'deletionStateLocked':
      return stateLockedConditions(input.stack, choice.lock)
    case 'deletionRestored':
      return restoredConditions(facts)
    case 'deletionProtected':
      return stalledCondition('DeletionProtected', 'Nothing is destroyed: set spec.deletionProtection to false to continue the deletion')
    case 'deletionSuspended':
      return suspendedCondition(
        `Deletion is waiting: the Stack is suspended. Set spec.suspend to false to destroy the resources, or ${orphanHint}`,
      )
    case 'resolvingDestroySource': {
      const error = sourceError(input)
      return error ? sourceErrorConditions(error) : reconcilingCondition('Deleting', 'Deletion is waiting until the source is resolved')
    }
    case 'awaitDestroyApproval': {
      const message = `Deletion is waiting. ${formatAwaitingApproval(facts)}, or ${orphanHint}`
      return awaitingApprovalCondition(approvalReason(facts), message)
    }
    case 'destroyPlanRejected':
      return stalledCondition('PlanRejected', `Deletion is waiting. ${formatRejected(facts)}, or ${orphanHint}`)
    case 'destroyCanceled': {
      const request = `request another Run with ${oarlockCommand('run', input.stack.metadata)}, or ${orphanHint}`
      return stalledCondition('RunCanceled', `Deletion is waiting: Run ${choice.last.metadata.name} was canceled; ${request}`)
    }
    case 'destroy':
      return destroyConditions(facts, choice)
  }
}

function destroyConditions(facts: StackFacts, { planned, isStalled }: Extract<DeletionChoice, { kind: 'destroy' }>): StackConditions {
  const { after, atMs } = planned
  if (!after) return reconcilingCondition('Deleting', 'The Stack is being deleted')
  const { run } = after
  const message = `Deletion is waiting: ${formatFailure(run)}. Next attempt at ${formatTime(atMs)}; ${formatSource(facts, run)}${orphanHint} that remain`
  if (after.kind === 'lost') {
    if (isStalled) return stalledCondition('WorkerCrashed', message)
    const lost = persistentRunFailure(facts, after.count)
    return reconcilingWith(lost, 'Deleting', `Run ${run.metadata.name} was lost. Next attempt at ${formatTime(atMs)}`)
  }
  const attempts = persistentRunFailure(facts)
  const reason = failureReason(run, 'DestroyFailed')
  return isStalled ? stalledCondition(reason, `${formatPersistent(attempts)}${message}`) : reconcilingWith(attempts, reason, message)
}
