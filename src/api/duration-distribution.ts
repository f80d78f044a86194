import { parseDuration } from '../kubernetes/object/index.ts'

/** An invalid load profile; the message contains the field, the value and what is allowed. */
export class ProfileError extends Error {
  override readonly name = 'ProfileError'
}

/** The phases of a Run that a worker executes. */
export const workPhases = ['preparing', 'planning', 'applying'] as const
export type WorkPhase = (typeof workPhases)[number]

/** A duration in a profile of `oarlock hollow` or `oarlock simulate`: constant, or durations by percentile. */
export type DurationDistribution = string | Readonly<Record<string, string>>

/**
 * Parses a duration such as `250ms`, or percentiles such as `{ "p0": "1s", "p50": "4s", "p99": "1m" }`, and returns a function
 * that maps a random number in [0, 1) to milliseconds. Between two percentiles it interpolates logarithmically, because durations
 * of real work are distributed so; before the first and after the last it is constant. `undefined` takes 0 ms.
 *
 * @param field the path of the value in the profile, for errors
 * @throws {ProfileError}
 */
export function durationSampler(field: string, value: unknown): (random: number) => number {
  if (value === undefined) return () => 0
  if (typeof value === 'string') {
    const ms = parseField(field, value)
    return () => ms
  }
  const points = Object.entries(profileRecord(field, value)).map(([name, text]) => {
    const percent = /^p\d+(\.\d+)?$/.test(name) ? Number(name.slice(1)) : Number.NaN
    if (!(percent <= 100)) throw new ProfileError(`${field}.${name} must be a percentile from p0 to p100, such as p50 or p99.9`)
    return { share: percent / 100, ms: parseField(`${field}.${name}`, text) }
  })
  if (points.length === 0) throw new ProfileError(`${field} {} must have at least one percentile, such as "p50": "4s"`)
  points.sort((a, b) => a.share - b.share)
  for (const [index, { ms, share }] of points.entries()) {
    const previous = points[index - 1]
    if (previous && previous.ms > ms) {
      throw new ProfileError(
        `${field}: p${share * 100} must not be shorter than p${previous.share * 100}, got ${ms} ms after ${previous.ms} ms`,
      )
    }
  }
  return random => interpolate(points, random)
}

function interpolate(points: readonly { share: number; ms: number }[], random: number): number {
  const index = points.findIndex(({ share }) => share > random)
  const above = points[index]
  if (!above) return points.at(-1)?.ms ?? 0
  const below = points[index - 1]
  if (!below) return above.ms
  const fraction = (random - below.share) / (above.share - below.share)
  // The logarithm of 0 is undefined: 1 ms is used instead.
  return Math.max(1, below.ms) * (Math.max(1, above.ms) / Math.max(1, below.ms)) ** fraction
}

function parseField(field: string, value: unknown): number {
  if (typeof value !== 'string') throw new ProfileError(`${field} ${JSON.stringify(value)} must be a duration such as "250ms" or "1m30s"`)
  try {
    return parseDuration(value)
  } catch (error) {
    throw new ProfileError(`${field}: ${(error as Error).message}`)
  }
}

/** @throws {ProfileError} unless it is a JSON object. */
export function profileRecord(field: string, value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new ProfileError(`${field} must be a JSON object, got ${JSON.stringify(value)?.slice(0, 100)}`)
}
