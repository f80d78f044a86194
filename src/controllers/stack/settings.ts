import { defaults, type StackSpec } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'

/** What a Stack asks for, with what it left out filled in. Times in milliseconds. */
export type Settings = {
  readonly manual: boolean
  readonly drift: 'Correct' | 'Report' | 'Off'
  /** Undefined: never check for drift. */
  readonly intervalMs: number | undefined
  readonly suspended: boolean
  readonly orphan: boolean
  /** Interrupt a Run whose inputs are outdated. */
  readonly cancelOutdated: boolean
  readonly retryLimit: number
  readonly retryInitialMs: number
  readonly retryMaxMs: number
  readonly historyLimit: number
}

export function settingsOf(spec: StackSpec): Settings {
  const { retry } = spec
  return {
    manual: spec.approval === 'Manual',
    drift: spec.drift ?? 'Correct',
    intervalMs: spec.interval === undefined ? undefined : parseDuration(spec.interval),
    suspended: spec.suspend === true,
    orphan: spec.deletion === 'Orphan',
    cancelOutdated: spec.onChange === 'Cancel',
    retryLimit: retry?.limit ?? defaults.retryLimit,
    retryInitialMs: parseDuration(retry?.initial ?? defaults.retryInitial),
    retryMaxMs: parseDuration(retry?.max ?? defaults.retryMax),
    historyLimit: spec.historyLimit ?? defaults.historyLimit,
  }
}

/** How long to wait after `failures` failed Runs in a row: `initial`, doubled each time, at most `max`. */
export function backoffMs(settings: Settings, failures: number): number {
  return Math.min(settings.retryMaxMs, settings.retryInitialMs * 2 ** Math.min(30, Math.max(0, failures - 1)))
}

/** The drift interval of one Stack, ±10% by its own constant `jitter` (0..1), so that a fleet does not check all at once. */
export function jitteredIntervalMs(intervalMs: number, jitter: number): number {
  return Math.round(intervalMs * (0.9 + 0.2 * jitter))
}
