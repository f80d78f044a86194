import { durationSampler, ProfileError, profileRecord, type WorkPhase, workPhases } from '../../../api/index.ts'

export { ProfileError }

/** How long simulated Runs take and how they end. */
export type HollowProfile = {
  /** By phase: draws a time in milliseconds for a chance 0 ≤ x < 1. */
  readonly phases: Readonly<Record<WorkPhase, (chance: number) => number>>
  /** This share of Runs fails, at the end of its last phase. */
  readonly failureShare: number
  /** This share of Runs has something to change, and an Applying phase. */
  readonly changeShare: number
}

/** One file serves `oarlock simulate`, too: the last ones are read there only. */
const fields = [
  'phases',
  'failureShare',
  'changeShare',
  ...['changesPerStackPerDay', 'stacksPerChange', 'changesByHour', 'workerStart', 'price'],
]

/**
 * Reads a profile: `{ "phases": { "preparing": T, "planning": T, "applying": T }, "failureShare": 0.02, "changeShare": 0.3 }`.
 * T is a duration such as `250ms`, or percentiles such as `{ "p0": "1s", "p50": "4s", "p99": "1m" }`: a time is drawn from the line
 * through them, whose duration axis is logarithmic, as times of real work are. Before the first and after the last it is flat. A phase
 * that is left out takes no time. Defaults: failureShare 0, changeShare 1.
 * @throws {ProfileError}
 */
export function parseProfile(value: unknown): HollowProfile {
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

/** No work at all: what is measured then is everything around it. */
export const emptyProfile = parseProfile({})

function parseShare(field: string, value: unknown, ifAbsent: number): number {
  if (value === undefined) return ifAbsent
  if (typeof value === 'number' && value >= 0 && value <= 1) return value
  throw new ProfileError(`${field} ${JSON.stringify(value)} must be a number from 0 to 1`)
}

function rejectUnknownFields(field: string, value: Record<string, unknown>, known: readonly string[]): void {
  const other = Object.keys(value).find(name => !known.includes(name))
  if (other !== undefined) throw new ProfileError(`${field} has ${JSON.stringify(other)}; allowed are ${known.join(', ')}`)
}
