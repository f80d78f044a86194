/** How far the operation of a Stack is, and what it did, as a pure decision from the Stack and its Runs. */
import { isEnded, phaseOf, type Run, type Stack } from '../../../api/index.ts'
import { findCondition, isConditionTrue } from '../../../kubernetes/object/index.ts'
import type { RunReport } from '../managed-object.ts'
import { exitCodes, type Operation, operationOf } from './operation.ts'
import { formatProgress, runReport } from './run-report.ts'
import { stackAnnotations } from './stack-marks.ts'

export type OperationOutcome =
  /** A Run is queued or active, or another follows; `isFailing`: one of its Runs has failed, and it is repeated. */
  | { readonly kind: 'active'; readonly message: string; readonly isFailing: boolean }
  | { readonly kind: 'succeeded'; readonly atMs: number }
  /** `failed`: it had no effect. `unknown`: it may have had one. Nothing is repeated. `isFinal`: a person canceled it, or its retries are exhausted. */
  | { readonly kind: 'failed' | 'unknown'; readonly message: string; readonly atMs: number; readonly isFinal: boolean }

export type OperationState = {
  readonly operation: Operation
  readonly isHandled: boolean
  readonly run: RunReport | undefined
  readonly outcome: OperationOutcome
}

/** `runs` are those of the Stack. Undefined if it has had no operation. */
export function decideOperation(stack: Stack, runs: readonly Run[]): OperationState | undefined {
  const operation = operationOf(stack)
  if (!operation) return undefined
  const own = runs.filter(run => run.spec.epoch >= operation.number).sort((a, b) => a.spec.epoch - b.spec.epoch)
  const newest = own.at(-1)
  const outcome = outcomeOf(stack, operation, own)
  const shown = operation.isRepeatable ? newest : own[0]
  const report: RunReport | undefined = shown ? runReport(stack, shown) : { type: 'Apply', phase: 'Queued' }
  // A Run that has ended is not handled before its Stack has recorded it.
  const run = report && outcome.kind === 'active' && newest && isEnded(newest) ? { ...report, phase: 'Applying' } : report
  return {
    operation,
    isHandled: stack.metadata.annotations?.[stackAnnotations.handledOperation] === String(operation.number),
    run,
    outcome,
  }
}

function outcomeOf(stack: Stack, operation: Operation, own: readonly Run[]): OperationOutcome {
  const { metadata, status } = stack
  const isCurrent = status?.observedGeneration === metadata.generation
  const ready = isCurrent ? findCondition(status?.conditions, 'Ready') : undefined
  const isStalled = isCurrent && isConditionTrue(status?.conditions, 'Stalled')
  if (!ready || (ready.status !== 'True' && !isStalled) || own.some(run => !isEnded(run))) {
    const active = own.findLast(run => !isEnded(run))
    const progress = formatProgress(active && runReport(stack, active))
    const message = ready ? `${ready.reason}: ${ready.message}${progress}` : 'it was written, and waits for its controller'
    return { kind: 'active', message: `${operation.kind}: Stack ${metadata.name}: ${message}`, isFailing: (status?.failures ?? 0) > 0 }
  }
  const first = own[0]
  if (ready.status === 'True') return { kind: 'succeeded', atMs: endedAtMs(status?.applied?.at) }
  const message = `${operation.kind} failed: Stack ${metadata.name}: ${ready.reason}: ${ready.message}`
  // Of what must not be repeated only the first Run counts: the others have refused.
  const decisive = operation.isRepeatable ? own.at(-1) : first?.spec.epoch === operation.number ? first : undefined
  const atMs = endedAtMs(decisive?.status?.finishedAt)
  if (decisive?.spec.type === 'Plan' && !operation.isRepeatable) {
    const text = `${operation.kind} failed: its namespace requires approval, with which the creation of something without a known name cannot be dispatched`
    return { kind: 'failed', message: text, atMs, isFinal: true }
  }
  if (!decisive) {
    const isBegun = own.length > 0 || (status?.lastRunNumber ?? 0) >= operation.number
    return { kind: isBegun ? 'unknown' : 'failed', message, atMs, isFinal: true }
  }
  const kind = resultOf(decisive)
  if (kind === 'succeeded') return { kind, atMs }
  const isSuperseded = decisive.status?.reason === 'Superseded'
  const isFinal = operation.isRepeatable || (phaseOf(decisive) === 'Canceled' && !isSuperseded)
  // Not the message of the Stack, which proposes another Run: the newest Run may be one that has refused, and this one may have to.
  const reported = decisive.status?.message || ready.reason
  const text = `${operation.kind} failed: Run ${decisive.metadata.name} (${phaseOf(decisive)}): ${reported}`
  return { kind, message: text, atMs, isFinal }
}

/** Reasons of failed Runs whose worker may not have known what its engine did. */
const lossReasons: ReadonlySet<string | undefined> = new Set(['LeaseLost', 'SupervisorLost'])

/** What a Run that has ended did. Without a sign that it did nothing, that is not known. */
function resultOf(run: Run): 'succeeded' | 'failed' | 'unknown' {
  const { phase, reason, plan, stateVersion, message = '' } = run.status ?? {}
  if (phase === 'Succeeded') return 'succeeded'
  if (run.spec.workerName === undefined) return 'failed'
  // A worker reports the plan, and only then executes it. One that was lost has not reported.
  const hasBegun = plan !== undefined || stateVersion !== undefined
  if ((phase === 'Failed' || phase === 'Canceled') && !hasBegun && !lossReasons.has(reason)) return 'failed'
  return phase === 'Failed' && new RegExp(`exit code ${exitCodes.failed}\\b`).test(message) ? 'failed' : 'unknown'
}

const endedAtMs = (time: string | undefined): number => (time === undefined ? 0 : Date.parse(time))
