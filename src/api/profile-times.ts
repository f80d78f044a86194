import { parseDuration } from '../kubernetes/object/index.ts'

/** A profile of Runs that cannot be used; the message names the field, what came and what is allowed. */
export class ProfileError extends Error {
  override readonly name = 'ProfileError'
}

/** The phases of a Run in which its worker works. */
export const workPhases = ['preparing', 'planning', 'applying'] as const
export type WorkPhase = (typeof workPhases)[number]

/** How long something takes, as profiles of `oarlock hollow` and `oarlock simulate` say it: always the same, or by percentile. */
export type Times = string | Readonly<Record<string, string>>

/**
 * Reads a duration such as `250ms`, or percentiles such as `{ "p0": "1s", "p50": "4s", "p99": "1m" }`: a time in milliseconds is drawn, for
 * a chance 0 ≤ x < 1, from the line through them, whose duration axis is logarithmic, as times of real work are. Before the first and
 * after the last it is flat. What is undefined takes no time.
 *
 * @param field where it stands, for errors
 * @throws {ProfileError}
 */
export function timesOf(field: string, value: unknown): (chance: number) => number {
  if (value === undefined) return () => 0
  if (typeof value === 'string') {
    const ms = durationOf(field, value)
    return () => ms
  }
  const points = Object.entries(profileRecord(field, value)).map(([name, text]) => {
    const percent = /^p\d+(\.\d+)?$/.test(name) ? Number(name.slice(1)) : Number.NaN
    if (!(percent <= 100)) throw new ProfileError(`${field}.${name} must be a percentile from p0 to p100, such as p50 or p99.9`)
    return { share: percent / 100, ms: durationOf(`${field}.${name}`, text) }
  })
  if (points.length === 0) throw new ProfileError(`${field} {} must have at least one percentile, such as "p50": "4s"`)
  points.sort((a, b) => a.share - b.share)
  for (const [index, { ms, share }] of points.entries()) {
    const before = points[index - 1]
    if (before && before.ms > ms) {
      throw new ProfileError(
        `${field}: p${share * 100} must not be shorter than p${before.share * 100}, got ${ms} ms after ${before.ms} ms`,
      )
    }
  }
  return chance => between(points, chance)
}

function between(points: readonly { share: number; ms: number }[], chance: number): number {
  const index = points.findIndex(({ share }) => share > chance)
  const above = points[index]
  if (!above) return points.at(-1)?.ms ?? 0
  const below = points[index - 1]
  if (!below) return above.ms
  const part = (chance - below.share) / (above.share - below.share)
  // Logarithms have no zero: a millisecond stands for it.
  return Math.max(1, below.ms) * (Math.max(1, above.ms) / Math.max(1, below.ms)) ** part
}

function durationOf(field: string, value: unknown): number {
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
