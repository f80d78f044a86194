import { durationSampler, ProfileError, profileRecord, type WorkPhase, workPhases } from '../../../api/index.ts'

export { ProfileError }

/** The durations and results of simulated Runs. */
export type HollowProfile = {
  /** For each phase: the duration in milliseconds at a random number 0 ≤ x < 1. */
  readonly phases: Readonly<Record<WorkPhase, (chance: number) => number>>
  /** The share of Runs that fails, at the end of the last phase. */
  readonly failureShare: number
  /** The share of Runs that has changes, and so a phase Applying. */
  readonly changeShare: number
}

/** The last fields are read only by `oarlock simulate`, which uses the same file. */
const fields = [
  'phases',
  'failureShare',
  'changeShare',
  ...['changesPerStackPerDay', 'stacksPerChange', 'changesByHour', 'workerStart', 'price'],
]

/**
 * Reads a profile: `{ "phases": { "preparing": T, "planning": T, "applying": T }, "failureShare": 0.02, "changeShare": 0.3 }`.
 * T is a duration such as `250ms`, or percentiles such as `{ "p0": "1s", "p50": "4s", "p99": "1m" }`: durations are interpolated between
 * them on a logarithmic axis, and are constant before the first and after the last. A phase that is not listed takes no time.
 * Defaults: failureShare 0, changeShare 1.
 * @throws {ProfileError}
 */
export function parseHollowProfile(value: unknown): HollowProfile {
  const profile = profileRecord('the profile', value)
  rejectUnknownFields('the profile', profile, fields)
  const phases = profileRecord('phases', profile.phases ?? {})
  rejectUnknownFields('phases', phases, workPhases)
  return {
    phases: {
      preparing: durationSampler('phases.preparing', phases.preparing),
      planning: durationSampler('phases.planning', phases.planning),
      applying: durationSampler('phases.applying', phases.applying),
    },
    failureShare: parseShare('failureShare', profile.failureShare, 0),
    changeShare: parseShare('changeShare', profile.changeShare, 1),
  }
}

/** Runs that take no time and succeed: measures only the overhead. */
export const emptyProfile = parseHollowProfile({})

function parseShare(field: string, value: unknown, ifAbsent: number): number {
  if (value === undefined) return ifAbsent
  if (typeof value === 'number' && value >= 0 && value <= 1) return value
  throw new ProfileError(`${field} ${JSON.stringify(value)} must be a number from 0 to 1`)
}

function rejectUnknownFields(field: string, value: Record<string, unknown>, known: readonly string[]): void {
  const other = Object.keys(value).find(name => !known.includes(name))
  if (other !== undefined) throw new ProfileError(`${field} has ${JSON.stringify(other)}; allowed are ${known.join(', ')}`)
}
