import { oarlockCommand } from '../../api/index.ts'
import type { DeletionChoice } from './choose-deletion.ts'
import { reconcilingCondition, type StackConditions, stalledCondition, suspendedCondition } from './conditions.ts'
import type { StackFacts } from './facts.ts'
import { formatFailure, formatTime } from './messages.ts'
import { formatAwaitingApproval } from './outlook-conditions.ts'
import { restoredConditions, stateErrorConditions } from './recovery-conditions.ts'

const orphanHint = 'set spec.deletion to Orphan to keep the resources'

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
    case 'deletionRestored':
      return restoredConditions(facts)
    case 'deletionProtected':
      return stalledCondition('DeletionProtected', 'Nothing is destroyed: set spec.deletionProtection to false to continue the deletion')
    case 'deletionSuspended':
      return suspendedCondition(
        `Deletion is waiting: the Stack is suspended. Set spec.suspend to false to destroy the resources, or ${orphanHint}`,
      )
    case 'resolvingDestroySource':
      return reconcilingCondition('Deleting', 'Deletion is waiting until the source is resolved')
    case 'awaitDestroyApproval': {
      const message = `Deletion is waiting. ${formatAwaitingApproval(facts)}, or ${orphanHint}`
      const detail = { reason: 'AwaitingApproval', message }
      return { ready: { status: 'False', ...detail }, awaitingApproval: detail }
    }
    case 'destroyCanceled': {
      const request = `request another Run with ${oarlockCommand('run', input.stack.metadata)}, or ${orphanHint}`
      return stalledCondition('RunCanceled', `Deletion is waiting: Run ${choice.last.metadata.name} was canceled; ${request}`)
    }
    case 'destroy':
      return destroyConditions(choice)
  }
}

function destroyConditions({ planned, isStalled }: Extract<DeletionChoice, { kind: 'destroy' }>): StackConditions {
  const { after, atMs } = planned
  if (!after) return reconcilingCondition('Deleting', 'The Stack is being deleted')
  const { run } = after
  if (after.kind === 'lost') {
    return reconcilingCondition('Deleting', `Run ${run.metadata.name} was lost. Next attempt at ${formatTime(atMs)}`)
  }
  const message = `Deletion is waiting: ${formatFailure(run)}. Next attempt at ${formatTime(atMs)}; ${orphanHint} that remain`
  return (isStalled ? stalledCondition : reconcilingCondition)(run.status?.reason ?? 'DestroyFailed', message)
}
