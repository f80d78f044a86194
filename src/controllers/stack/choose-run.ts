import {
  annotations,
  isEnded,
  oarlockCommand,
  type Run,
  type RunSpec,
  type RunType,
  type Stack,
  type StackStatus,
} from '../../api/index.ts'
import { isOutdatedPlan } from './aggregate-runs.ts'
import { engineRecheckMs, lostRunLimit } from './constants.ts'
import { changeReason, type Inputs, inputsOf, sameInputs } from './inputs.ts'
import { jitteredIntervalMs } from './jitter.ts'
import { formatFailure, formatTime } from './messages.ts'
import { poisonCount } from './repeated-failure.ts'
import { consecutiveLostRuns, endedAtMs, isAdHocRun, isLifecycleRun, isLost, isSuperseded, phaseOf } from './run-status.ts'
import { retryDelayMs, type Settings } from './settings.ts'

/** A Run that the Stack needs, not before `atMs`. */
export type PlannedRun = {
  readonly type: RunType
  readonly reason: string
  readonly atMs: number
  /** The value of the annotation `oarlock.dev/requested-run` that this Run handles. */
  readonly request?: string
  readonly approvedPlan?: RunSpec['approvedPlan']
  readonly recoveredFrom?: string
  /** Why the Stack is not Ready until then; undefined for a check of a Stack that is in sync. */
  readonly notReady?: { readonly reason: string; readonly message: string; readonly isStalled?: boolean }
}

export type RunChoice =
  | { readonly kind: 'run'; readonly planned: PlannedRun }
  /** The applied inputs are current, and no drift check is scheduled. */
  | { readonly kind: 'inSync' }
  /** The plan in the status waits for approval by a user. */
  | { readonly kind: 'awaitApproval' }
  /** No Run would succeed until a user changes something. */
  | { readonly kind: 'stalled'; readonly reason: string; readonly message: string }

export type ChooseRunInput = {
  readonly stack: Stack
  readonly status: StackStatus
  /** The Stack's own, oldest first. */
  readonly runs: readonly Run[]
  readonly settings: Settings
  readonly inputs: Inputs
  readonly nowMs: number
  readonly jitter: number
}

/** Chooses the next Run of a Stack that is not being deleted. Whether it may start now is decided by `next-step.ts`. */
export function chooseRun(input: ChooseRunInput): RunChoice {
  const { stack, status, runs, settings, inputs, nowMs } = input
  const changeType: RunType = settings.manualApproval ? 'Plan' : 'Apply'
  const inSync = sameInputs(status.applied, inputs)
  const last = runs.findLast(run => isEnded(run) && isLifecycleRun(run))
  const isCurrent = last !== undefined && sameInputs(inputsOf(last), inputs)

  const request = pendingRequest(stack, status)
  if (request) {
    const type = request.type === 'Apply' ? changeType : request.type
    return { kind: 'run', planned: { type, reason: 'Requested', atMs: nowMs, request: request.value } }
  }
  const adHoc = repeatAdHocRun(runs, nowMs)
  if (adHoc) return adHoc

  const lost = consecutiveLostRuns(runs, run => !isAdHocRun(run))
  const recovery = lost === 0 || !last ? undefined : recoverLostRun(last, lost, settings, nowMs)

  if (status.plan && settings.manualApproval && sameInputs(status.plan, inputs)) {
    const { digest, runName } = status.plan
    if (stack.metadata.annotations?.[annotations.approvedPlan] !== digest) return { kind: 'awaitApproval' }
    return { kind: 'run', planned: { type: 'Apply', reason: 'Approved', atMs: nowMs, approvedPlan: { digest, runName }, ...recovery } }
  }
  const equalFailures = poisonCount(status, settings)
  if (equalFailures !== undefined && !recovery && last && phaseOf(last) === 'Failed') {
    const hint = `No further Run is created; fix the cause, then change the Stack or request a Run: ${oarlockCommand('run', stack.metadata)}`
    return {
      kind: 'stalled',
      reason: 'Poisoned',
      message: `The last ${equalFailures} Runs failed the same way. ${formatFailure(last)}. ${hint}`,
    }
  }
  // A lost or failed check of a Stack that is in sync is repeated as a check.
  const repeatType = inSync && last?.spec.type === 'Plan' ? 'Plan' : changeType
  if (recovery) return { kind: 'run', planned: { ...recovery, type: repeatType } }
  if (isCurrent && phaseOf(last) === 'Failed') return retryFailedRun(input, last, repeatType)
  if (!inSync) {
    if (isCurrent && phaseOf(last) === 'Canceled' && last.spec.cancelReason !== 'Outdated') {
      const message = `Run ${last.metadata.name} was canceled; change the Stack or request another Run: ${oarlockCommand('run', stack.metadata)}`
      return { kind: 'stalled', reason: 'RunCanceled', message }
    }
    const applied = last && !isCurrent ? inputsOf(last) : status.applied
    return { kind: 'run', planned: { type: changeType, reason: changeReason(applied, inputs), atMs: nowMs } }
  }
  return scheduleDriftCheck(input, last, changeType)
}

function retryFailedRun({ stack, status, settings }: ChooseRunInput, last: Run, type: RunType): RunChoice {
  const failures = status.failures ?? 0
  const reason = last.status?.reason ?? 'RunFailed'
  const failure = formatFailure(last)
  const failedAtMs = endedAtMs(last)
  if (isOutdatedPlan(last)) {
    return { kind: 'run', planned: { type, reason: 'PlanOutdated', atMs: 0, notReady: { reason, message: failure } } }
  }
  if (reason === 'EngineNotFound') {
    const atMs = failedAtMs + engineRecheckMs
    const message = `${failure}. Next attempt at ${formatTime(atMs)}`
    return { kind: 'run', planned: { type, reason: 'Retry', atMs, notReady: { reason, message, isStalled: true } } }
  }
  if (last.status?.retryable === false) {
    return { kind: 'stalled', reason, message: `${failure}. It is not retried because the same inputs would fail again` }
  }
  if (failures > settings.retryLimit) {
    const message = `${failure}. ${formatRetriesExhausted(settings.retryLimit)}; request another Run: ${oarlockCommand('run', stack.metadata)}`
    return { kind: 'stalled', reason: 'RetriesExhausted', message }
  }
  const atMs = failedAtMs + retryDelayMs(settings, failures)
  const message = `${failure}. Retry ${Math.max(1, failures)} of ${settings.retryLimit} at ${formatTime(atMs)}`
  return { kind: 'run', planned: { type, reason: 'Retry', atMs, notReady: { reason, message } } }
}

function formatRetriesExhausted(limit: number): string {
  if (limit === 0) return 'It is not retried because spec.retry.limit is 0'
  return limit === 1 ? 'The only retry failed' : `All ${limit} retries failed`
}

function recoverLostRun(last: Run, lost: number, settings: Settings, nowMs: number): Omit<PlannedRun, 'type'> {
  const { name } = last.metadata
  const base = { reason: 'RecoveredFrom', recoveredFrom: name }
  if (lost < lostRunLimit) return { ...base, atMs: nowMs, notReady: { reason: 'RunLost', message: `Run ${name} was lost` } }
  const atMs = endedAtMs(last) + retryDelayMs(settings, lost - lostRunLimit + 1)
  const message = `The last ${lost} Runs were lost, most recently ${name}. Next attempt at ${formatTime(atMs)}`
  return { ...base, atMs, notReady: { reason: 'RunLost', message } }
}

function scheduleDriftCheck({ status, settings, jitter }: ChooseRunInput, last: Run | undefined, changeType: RunType): RunChoice {
  if (settings.drift === 'Off' || settings.intervalMs === undefined) return { kind: 'inSync' }
  const checkedAtMs = Date.parse(status.checkedAt ?? status.applied!.at)
  // A canceled check is not repeated before the next interval.
  const sinceMs = last && phaseOf(last) === 'Canceled' ? Math.max(checkedAtMs, endedAtMs(last)) : checkedAtMs
  const atMs = sinceMs + jitteredIntervalMs(settings.intervalMs, jitter)
  return { kind: 'run', planned: { type: settings.drift === 'Report' ? 'Plan' : changeType, reason: 'DriftCheck', atMs } }
}

/** Repeats a requested Plan or Refresh that was lost or superseded, because a user waits for it; lost ones at most {@link lostRunLimit} times. */
function repeatAdHocRun(runs: readonly Run[], nowMs: number): RunChoice | undefined {
  const newest = runs.findLast(isEnded)
  if (newest && isAdHocRun(newest) && isSuperseded(newest)) {
    return { kind: 'run', planned: { type: newest.spec.type, reason: 'Requested', atMs: nowMs } }
  }
  const last = runs.findLast(run => isEnded(run) && !isSuperseded(run))
  if (!last || !isAdHocRun(last) || !isLost(last) || consecutiveLostRuns(runs, isAdHocRun) >= lostRunLimit) return undefined
  return { kind: 'run', planned: { type: last.spec.type, reason: 'Requested', recoveredFrom: last.metadata.name, atMs: nowMs } }
}

/** The request in the annotation `oarlock.dev/requested-run`, unless it was handled already. */
export function pendingRequest(stack: Stack, status: StackStatus): { value: string; type: 'Plan' | 'Apply' | 'Refresh' } | undefined {
  const value = stack.metadata.annotations?.[annotations.requestedRun]
  if (!value || value === status.handledRequest) return undefined
  const [kind] = value.split(':', 1)
  return { value, type: kind === 'plan' ? 'Plan' : kind === 'refresh' ? 'Refresh' : 'Apply' }
}
