/** What the Stack of a managed resource tells about it, as a pure decision. */
import type { Run, Stack } from '../../../api/index.ts'
import { type Condition, findCondition, isConditionTrue } from '../../../kubernetes/object/index.ts'
import type { ManagedObject, Observation, RunReport } from '../managed-object.ts'
import { formatProgress, runReport } from './run-report.ts'

type NotReady = Exclude<Observation['ready'], boolean | undefined>

/**
 * The parts of an observation that follow from the status of the Stack. `run` is its newest Run, if that is active; `known` is the problem that the
 * resource reports now: while another attempt is in progress, the Stack does not have the reason of the last failure.
 */
export function observeStack(stack: Stack, run: Run | undefined, known?: string): Pick<Observation, 'ready' | 'problem' | 'run'> {
  const report = runReport(stack, run)
  return { ready: readyOf(stack, report), problem: problemOf(stack, known), run: report }
}

/** The problem that a resource reports. */
export function knownProblem({ status }: Pick<ManagedObject, 'status'>): string | undefined {
  const synced = findCondition(status?.conditions, 'Synced')
  return synced?.status === 'False' ? synced.message : undefined
}

function readyOf(stack: Stack, report: RunReport | undefined): true | NotReady {
  const { metadata, status } = stack
  const known = reportedReady(stack)
  if (metadata.deletionTimestamp) return { reason: 'Deleting', message: known ? describe(stack, known, report) : '' }
  const reason = status?.applied ? 'Updating' : 'Creating'
  if (!known) return { reason, message: `Stack ${metadata.name} was written, and waits for its controller` }
  if (known.status === 'True') return true
  const continues = isConditionTrue(status?.conditions, 'Reconciling') || isConditionTrue(status?.conditions, 'AwaitingApproval')
  return { reason: continues ? reason : 'Unavailable', message: describe(stack, known, report) }
}

/** The condition Ready if it is about the present spec. */
function reportedReady({ metadata, status }: Stack): Condition | undefined {
  return status?.observedGeneration === metadata.generation ? findCondition(status?.conditions, 'Ready') : undefined
}

/** A failed Run, also while it is retried. A new spec is a new attempt. */
function problemOf(stack: Stack, known: string | undefined): string | undefined {
  const { status } = stack
  const ready = reportedReady(stack)
  if (!ready || ready.status === 'True') return undefined
  const stalled = findCondition(status?.conditions, 'Stalled')
  const isFailing = stalled?.status === 'True' || (status?.failures ?? 0) > 0 || ready.reason === 'PersistentFailure'
  if (!isFailing) return undefined
  return ready.reason === 'Progressing' && known !== undefined ? known : describe(stack, ready, undefined)
}

function describe({ metadata }: Stack, { reason, message }: Condition, report: RunReport | undefined): string {
  return `Stack ${metadata.name}: ${reason}${message && `: ${message}`}${formatProgress(report)}`
}
