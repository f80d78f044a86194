import { isEnded, isMutating, isRejected, isStateError, phaseOf, type Run, type RunSpec, type RunType } from '../../api/index.ts'
import { approvedPlan } from './approval.ts'
import { lostRunLimit, missingProgramReasons, programRecheckMs, stateLockRetryMs } from './constants.ts'
import { consecutiveCrashes, crashLimit } from './crashed-workers.ts'
import { changeType, type RunKind, requestedKind, type StackFacts } from './facts.ts'
import { changeReason, type Inputs, inputsOf, sameInputs, specVersionOf } from './inputs.ts'
import { jitteredIntervalMs } from './jitter.ts'
import { isPlanRejected } from './rejection.ts'
import { poisonCount } from './repeated-failure.ts'
import { consecutiveLostRuns, endedAtMs, isAdHocRun, isLost, isOutdatedPlan, isStateLocked, isUnattempted } from './run-status.ts'
import { retryDelayMs, type Settings } from './settings.ts'

/** A Run that the Stack needs, not before `atMs`. */
export type PlannedRun = {
  readonly type: RunType
  readonly planMode?: RunSpec['planMode']
  readonly options?: RunSpec['options']
  readonly reason: string
  readonly atMs: number
  /** The value of the annotation `oarlock.dev/requested-run` that this Run handles. */
  readonly request?: string
  readonly approvedPlan?: RunSpec['approvedPlan']
  readonly recoveredFrom?: string
  /** Why the Stack is not Ready until then; undefined for a new change, and for a check of a Stack that is in sync. */
  readonly after?: RunFailure
}

/** The Run that failed, and what repeats it. */
export type RunFailure =
  | { readonly kind: 'lost'; readonly run: Run /** Number of consecutive lost Runs. */; readonly count: number }
  | { readonly kind: 'planOutdated'; readonly run: Run }
  | { readonly kind: 'programNotFound'; readonly run: Run }
  | { readonly kind: 'stateLocked'; readonly run: Run }
  | { readonly kind: 'failed'; readonly run: Run }

export type RunChoice =
  | { readonly kind: 'run'; readonly planned: PlannedRun }
  /** The applied inputs are current, and no drift check is scheduled. */
  | { readonly kind: 'inSync' }
  /** The plan in the record waits for approval by a user. */
  | { readonly kind: 'awaitApproval' }
  /** A user has rejected the plan in the record. */
  | { readonly kind: 'planRejected' }
  /** No Run would succeed until a user changes something. */
  | { readonly kind: 'poisoned'; readonly last: Run; readonly count: number }
  /** The last Runs have crashed their workers; `last` is the newest that did. */
  | { readonly kind: 'crashing'; readonly last: Run; readonly count: number }
  | { readonly kind: 'canceled' | 'notRetryable' | 'retriesExhausted'; readonly last: Run }

/** Chooses the next Run of a Stack that is not being deleted. Whether it may start now is decided by `choose-next.ts`. */
export function chooseRun(facts: StackFacts, inputs: Inputs): RunChoice {
  const { input, record, runs, settings, inSync, request, last } = facts
  const { nowMs } = input
  const type = changeType(settings)
  const lastInputs = last && inputsOf(last, specVersionOf(input.stack), 'execution')
  const isCurrent = last !== undefined && sameInputs(lastInputs, inputs)

  if (request) {
    return { kind: 'run', planned: { ...requestedKind(request, settings), reason: 'Requested', atMs: nowMs, request: request.value } }
  }
  const adHoc = repeatRequestedRun(runs, settings, nowMs)
  if (adHoc) return { kind: 'run', planned: adHoc }

  const lost = consecutiveLostRuns(runs, run => !isAdHocRun(run))
  const recovery = lost === 0 || !last ? undefined : recoverLostRun(facts, last, lost)

  const crashes = consecutiveCrashes(runs, specVersionOf(input.stack), run => !isAdHocRun(run))
  if (record.plan && settings.manualApproval && sameInputs(record.plan, inputs)) {
    if (isPlanRejected(record)) return { kind: 'planRejected' }
    const approved = approvedPlan(facts)
    if (!approved) return { kind: 'awaitApproval' }
    if (crashes.length >= crashLimit) return { kind: 'crashing', last: crashes[0]!, count: crashes.length }
    const { mode, options } = record.plan
    const kind: RunKind = { type: mode === 'Refresh' ? 'Refresh' : 'Apply', ...(options && { options }) }
    return { kind: 'run', planned: { ...kind, reason: 'Approved', atMs: nowMs, approvedPlan: approved, ...recovery } }
  }
  if (recovery && crashes.length >= crashLimit) return { kind: 'crashing', last: crashes[0]!, count: crashes.length }
  const equalFailures = poisonCount(record, settings)
  if (equalFailures !== undefined && !recovery && last && phaseOf(last) === 'Failed')
    return { kind: 'poisoned', last, count: equalFailures }
  // A lost or failed check of a Stack that is in sync is repeated as a check.
  const repeatType = inSync && last?.spec.type === 'Plan' ? 'Plan' : type
  if (recovery) return { kind: 'run', planned: { ...recovery, type: repeatType } }
  if (isCurrent && phaseOf(last) === 'Failed') return retryFailedRun(facts, last, repeatType)
  if (inSync) return scheduleDriftCheck(facts)
  if (isCurrent && phaseOf(last) === 'Canceled' && last.spec.cancelReason !== 'Outdated') return { kind: 'canceled', last }
  const applied = isCurrent ? record.applied : (lastInputs ?? record.applied)
  return { kind: 'run', planned: { type, reason: changeReason(applied, inputs), atMs: nowMs } }
}

/** The plan of destruction that a user has requested. It needs neither the present source nor dependencies. */
export function chooseDestroyPlan({ request, runs, input, settings }: StackFacts): PlannedRun | undefined {
  if (request) {
    if (request.planMode !== 'Destroy') return undefined
    return { type: 'Plan', planMode: 'Destroy', reason: 'Requested', atMs: input.nowMs, request: request.value }
  }
  const repeated = repeatRequestedRun(runs, settings, input.nowMs)
  return repeated?.planMode === 'Destroy' ? repeated : undefined
}

function retryFailedRun({ input, record, settings }: StackFacts, last: Run, type: RunType): RunChoice {
  const failures = record.failures ?? 0
  if (isOutdatedPlan(last)) {
    return { kind: 'run', planned: { type, reason: 'PlanOutdated', atMs: 0, after: { kind: 'planOutdated', run: last } } }
  }
  const retry = { type, reason: 'Retry' }
  if (missingProgramReasons.has(last.status?.reason)) {
    const atMs = endedAtMs(last) + programRecheckMs
    return { kind: 'run', planned: { ...retry, atMs, after: { kind: 'programNotFound', run: last } } }
  }
  if (isStateLocked(last)) {
    // It did nothing, so what it was to replace is not replaced yet.
    const kind = last.spec.options ? { ...requestedKind(last.spec, settings), reason: 'Retry' } : retry
    return { kind: 'run', planned: { ...kind, atMs: endedAtMs(last) + stateLockRetryMs, after: { kind: 'stateLocked', run: last } } }
  }
  // The state is there now.
  const isResolved = isStateError(last.status?.reason) && input.state !== undefined
  if (last.status?.retryable === false && !isResolved) return { kind: 'notRetryable', last }
  if (failures > settings.retryLimit) return { kind: 'retriesExhausted', last }
  const atMs = endedAtMs(last) + retryDelayMs(settings, failures)
  return { kind: 'run', planned: { ...retry, atMs, after: { kind: 'failed', run: last } } }
}

function recoverLostRun({ input, settings }: StackFacts, last: Run, count: number): Omit<PlannedRun, 'type'> {
  const atMs = count < lostRunLimit ? input.nowMs : endedAtMs(last) + retryDelayMs(settings, count - lostRunLimit + 1)
  return { reason: 'RecoveredFrom', recoveredFrom: last.metadata.name, atMs, after: { kind: 'lost', run: last, count } }
}

function scheduleDriftCheck({ input, record, settings, last }: StackFacts): RunChoice {
  if (settings.drift === 'Off' || settings.intervalMs === undefined) return { kind: 'inSync' }
  const checkedAtMs = Date.parse(record.checkedAt ?? record.applied!.at)
  // A canceled check is not repeated before the next interval.
  const sinceMs = last && phaseOf(last) === 'Canceled' ? Math.max(checkedAtMs, endedAtMs(last)) : checkedAtMs
  const atMs = sinceMs + jitteredIntervalMs(settings.intervalMs, input.jitter)
  const type = settings.drift === 'Report' ? 'Plan' : changeType(settings)
  return { kind: 'run', planned: { type, reason: 'DriftCheck', atMs } }
}

/**
 * Repeats a requested Run of which nothing was attempted, because it was superseded or its worker rejected it, and a Plan or Refresh that was lost, because a user waits for it; lost ones at most
 * {@link lostRunLimit} times. A lost Apply is not repeated with its options: it would replace a resource twice. A Run with an approved plan is
 * created again as long as its approval counts.
 */
function repeatRequestedRun(runs: readonly Run[], settings: Settings, nowMs: number): PlannedRun | undefined {
  const repeat = ({ spec }: Run) => ({ ...requestedKind(spec, settings), reason: 'Requested', atMs: nowMs })
  const isRequested = (run: Run) => (isAdHocRun(run) || run.spec.options !== undefined) && run.spec.approvedPlan === undefined
  const newest = runs.findLast(isEnded)
  if (newest && isRequested(newest) && isUnattempted(newest)) return repeat(newest)
  // A Run of the lifecycle that a user requested may repeat what is applied: nothing else requires it.
  if (newest?.spec.reason === 'Requested' && isRejected(newest) && newest.spec.approvedPlan === undefined) return repeat(newest)
  const last = runs.findLast(run => isEnded(run) && !isUnattempted(run))
  if (!last || !isRequested(last) || !isAdHocRun(last) || !isLost(last)) return undefined
  if ((isMutating(last.spec.type) && last.spec.type !== 'Refresh') || consecutiveLostRuns(runs, isAdHocRun) >= lostRunLimit)
    return undefined
  return { ...repeat(last), recoveredFrom: last.metadata.name }
}
