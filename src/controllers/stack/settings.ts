import { type ApprovalPolicy, defaults, requiresApproval, type StackSpec } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { exponentialDelayMs } from '../../kubernetes/util/index.ts'

/** A Stack's options with the defaults applied. Times in milliseconds. */
export type Settings = {
  readonly manualApproval: boolean
  readonly drift: 'Correct' | 'Report' | 'Off'
  /** Undefined: never check for drift. */
  readonly intervalMs: number | undefined
  readonly suspended: boolean
  readonly orphanOnDelete: boolean
  /** Interrupt a Run whose inputs are outdated. */
  readonly cancelOutdated: boolean
  readonly retryLimit: number
  readonly retryInitialMs: number
  readonly retryMaxMs: number
  readonly historyLimit: number
}

export function settingsOf(spec: StackSpec, approvalPolicy?: ApprovalPolicy): Settings {
  const { retry } = spec
  return {
    manualApproval: requiresApproval(spec, approvalPolicy),
    drift: spec.drift ?? 'Correct',
    intervalMs: spec.interval === undefined ? undefined : parseDuration(spec.interval),
    suspended: spec.suspend === true,
    orphanOnDelete: spec.deletion === 'Orphan',
    cancelOutdated: spec.onChange === 'Cancel',
    retryLimit: retry?.limit ?? defaults.retryLimit,
    retryInitialMs: parseDuration(retry?.initial ?? defaults.retryInitial),
    retryMaxMs: parseDuration(retry?.max ?? defaults.retryMax),
    historyLimit: spec.historyLimit ?? defaults.historyLimit,
  }
}

/** Delay before the next Run after `failures` consecutive failures: `retry.initial`, doubled with each failure, at most `retry.max`. */
export function retryDelayMs({ retryInitialMs, retryMaxMs }: Settings, failures: number): number {
  return exponentialDelayMs(failures, { minMs: retryInitialMs, maxMs: retryMaxMs })
}
