import { annotations, isEnded, type Run, type RunSpec, type RunType, type Stack, type StackStatus } from '../../api/index.ts'
import { formatFailed, formatTime } from './conditions.ts'
import { isPlanOutdated } from './fold-runs.ts'
import { engineRecheckMs, lostLimit } from './limits.ts'
import {
  changeReason,
  endedAtMs,
  type Inputs,
  inputsOf,
  isAdHocRun,
  isLifecycleRun,
  isLost,
  isSuperseded,
  lostInARow,
  phaseOf,
  sameInputs,
} from './run-facts.ts'
import { poisonedBy } from './same-failure.ts'
import { backoffMs, jitteredIntervalMs, type Settings } from './settings.ts'

/** A Run the Stack needs, not before `atMs`. */
export type Want = {
  readonly type: RunType
  readonly reason: string
  readonly atMs: number
  /** The value of the annotation `oarlock.dev/requested-run` that this Run answers. */
  readonly request?: string
  readonly approvedPlan?: RunSpec['approvedPlan']
  readonly recoveredFrom?: string
  /** Why the Stack is not as it should be until then; undefined for a check of a Stack that is. */
  readonly because?: { readonly reason: string; readonly message: string; readonly isFinal?: boolean }
}

export type Choice =
  | { readonly kind: 'run'; readonly want: Want }
  /** What stands is what the Stack says, and no check is due ever. */
  | { readonly kind: 'rest' }
  /** The plan in the status waits for a person. */
  | { readonly kind: 'await' }
  /** No Run would help until somebody changes something. */
  | { readonly kind: 'stall'; readonly reason: string; readonly message: string }

export type ChoiceInput = {
  readonly stack: Stack
  readonly status: StackStatus
  /** The Stack's own, oldest first. */
  readonly runs: readonly Run[]
  readonly settings: Settings
  readonly inputs: Inputs
  readonly nowMs: number
  readonly jitter: number
}

/** Which Run a Stack that is not being deleted needs next. Whether it may start now is not asked here. */
export function chooseRun(input: ChoiceInput): Choice {
  const { stack, status, runs, settings, inputs, nowMs } = input
  const work: RunType = settings.manual ? 'Plan' : 'Apply'
  const inSync = sameInputs(status.applied, inputs)
  const last = runs.findLast(run => isEnded(run) && isLifecycleRun(run))
  const isCurrent = last !== undefined && sameInputs(inputsOf(last), inputs)

  const request = pendingRequest(stack, status)
  if (request) {
    const type = request.type === 'Apply' ? work : request.type
    return { kind: 'run', want: { type, reason: 'Requested', atMs: nowMs, request: request.value } }
  }
  const side = repeatSideRun(runs, nowMs)
  if (side) return side

  const lost = lostInARow(runs, run => !isAdHocRun(run))
  const recovery = lost === 0 || !last ? undefined : recover(last, lost, settings, nowMs)

  if (status.plan && settings.manual && sameInputs(status.plan, inputs)) {
    const { digest, runName } = status.plan
    if (stack.metadata.annotations?.[annotations.approvedPlan] !== digest) return { kind: 'await' }
    return { kind: 'run', want: { type: 'Apply', reason: 'Approved', atMs: nowMs, approvedPlan: { digest, runName }, ...recovery } }
  }
  const sameFailures = poisonedBy(status, settings)
  if (sameFailures !== undefined && !recovery && last && phaseOf(last) === 'Failed') {
    const hint = `No Run is started until the cause is gone: then change the Stack, or ask for a Run: oarlock run ${stack.metadata.name}`
    return {
      kind: 'stall',
      reason: 'Poisoned',
      message: `The last ${sameFailures} Runs failed the same way. ${formatFailed(last)} ${hint}`,
    }
  }
  if (recovery && last) {
    // A lost check of a Stack that is in sync is made again as what it was.
    return { kind: 'run', want: { ...recovery, type: inSync && last.spec.type === 'Plan' ? 'Plan' : work } }
  }
  if (isCurrent && phaseOf(last) === 'Failed') return retry(input, last, inSync && last.spec.type === 'Plan' ? 'Plan' : work)
  if (!inSync) {
    if (isCurrent && phaseOf(last) === 'Canceled' && last.spec.cancelReason !== 'Outdated') {
      const message = `Run ${last.metadata.name} was canceled. Change the Stack, or ask for a Run: oarlock run ${stack.metadata.name}`
      return { kind: 'stall', reason: 'RunCanceled', message }
    }
    return {
      kind: 'run',
      want: { type: work, reason: changeReason(last && !isCurrent ? inputsOf(last) : status.applied, inputs), atMs: nowMs },
    }
  }
  return drift(input, last, work)
}

function retry({ stack, status, settings }: ChoiceInput, last: Run, type: RunType): Choice {
  const failures = status.failures ?? 0
  const reason = last.status?.reason ?? 'RunFailed'
  const failedAtMs = endedAtMs(last)
  if (isPlanOutdated(last)) {
    return { kind: 'run', want: { type, reason: 'PlanOutdated', atMs: 0, because: { reason, message: formatFailed(last) } } }
  }
  if (reason === 'EngineNotFound') {
    const atMs = failedAtMs + engineRecheckMs
    const message = `${formatFailed(last)} Looking again at ${formatTime(atMs)}`
    return { kind: 'run', want: { type, reason: 'Retry', atMs, because: { reason, message, isFinal: true } } }
  }
  if (last.status?.retryable === false) {
    return { kind: 'stall', reason, message: `${formatFailed(last)} The same inputs would fail again, so it is not retried` }
  }
  if (failures > settings.retryLimit) {
    const message = `${formatFailed(last)} No retry is left of ${settings.retryLimit}; ask for another Run: oarlock run ${stack.metadata.name}`
    return { kind: 'stall', reason: 'RetriesExhausted', message }
  }
  const atMs = failedAtMs + backoffMs(settings, failures)
  const message = `${formatFailed(last)} Retry ${Math.max(1, failures)} of ${settings.retryLimit} at ${formatTime(atMs)}`
  return { kind: 'run', want: { type, reason: 'Retry', atMs, because: { reason, message } } }
}

function recover(last: Run, lost: number, settings: Settings, nowMs: number): Omit<Want, 'type'> {
  const { name } = last.metadata
  const base = { reason: 'RecoveredFrom', recoveredFrom: name }
  if (lost < lostLimit) return { ...base, atMs: nowMs, because: { reason: 'RunLost', message: `Run ${name} was lost` } }
  const atMs = endedAtMs(last) + backoffMs(settings, lost - lostLimit + 1)
  const message = `The last ${lost} Runs were lost, the newest is ${name}. Trying again at ${formatTime(atMs)}`
  return { ...base, atMs, because: { reason: 'RunLost', message } }
}

function drift({ status, settings, jitter }: ChoiceInput, last: Run | undefined, work: RunType): Choice {
  if (settings.drift === 'Off' || settings.intervalMs === undefined) return { kind: 'rest' }
  const checkedAtMs = Date.parse(status.checkedAt ?? status.applied!.at)
  // A canceled check is not made again at once.
  const sinceMs = last && phaseOf(last) === 'Canceled' ? Math.max(checkedAtMs, endedAtMs(last)) : checkedAtMs
  const atMs = sinceMs + jitteredIntervalMs(settings.intervalMs, jitter)
  return { kind: 'run', want: { type: settings.drift === 'Report' ? 'Plan' : work, reason: 'DriftCheck', atMs } }
}

/** Somebody waits for a Plan or Refresh that was lost, or replaced while it waited: it is made again, but not for ever. */
function repeatSideRun(runs: readonly Run[], nowMs: number): Choice | undefined {
  const newest = runs.findLast(isEnded)
  if (newest && isAdHocRun(newest) && isSuperseded(newest)) {
    return { kind: 'run', want: { type: newest.spec.type, reason: 'Requested', atMs: nowMs } }
  }
  const last = runs.findLast(run => isEnded(run) && !isSuperseded(run))
  if (!last || !isAdHocRun(last) || !isLost(last) || lostInARow(runs, isAdHocRun) >= lostLimit) return undefined
  return { kind: 'run', want: { type: last.spec.type, reason: 'Requested', recoveredFrom: last.metadata.name, atMs: nowMs } }
}

/** What the annotation `oarlock.dev/requested-run` asks for, if it was not acted on yet. */
export function pendingRequest(stack: Stack, status: StackStatus): { value: string; type: 'Plan' | 'Apply' | 'Refresh' } | undefined {
  const value = stack.metadata.annotations?.[annotations.requestedRun]
  if (!value || value === status.handledRequest) return undefined
  const [kind] = value.split(':', 1)
  return { value, type: kind === 'plan' ? 'Plan' : kind === 'refresh' ? 'Refresh' : 'Apply' }
}
