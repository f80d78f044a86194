import { parseDuration } from '../kube/index.ts'
import type { Random } from './random.ts'

/** How long something takes, as a profile says it: exactly one of the three. Durations as text (`90s`). */
export type Spread = {
  /** Always the same. */
  readonly fixed?: string
  /** Lognormal, by its median and its 99th percentile: what times of jobs usually look like. */
  readonly p50?: string
  readonly p99?: string
  /** By share (`"0"` to `"1"`): straight lines between them. For what was measured. */
  readonly quantiles?: Readonly<Record<string, string>>
}

/** Draws a time in milliseconds. */
export type Sampler = (random: Random) => number

/** The 99th percentile of the standard normal distribution. */
const z99 = 2.326_347_874

/**
 * Why the spread makes no sense; undefined when it does. Its fields have the right types already.
 *
 * @param path where it stands in the profile
 */
export function spreadError(spread: Spread, path: string): string | undefined {
  const { fixed, p50, p99, quantiles } = spread
  const kinds = [fixed !== undefined, p50 !== undefined || p99 !== undefined, quantiles !== undefined].filter(Boolean).length
  if (kinds !== 1) return `${path}: say it one way: fixed, or p50 and p99, or quantiles`
  if (fixed !== undefined) return undefined
  if (quantiles !== undefined) return quantilesError(quantiles, `${path}.quantiles`)
  if (p50 === undefined || p99 === undefined) return `${path}: p50 and p99 go together, ${p50 === undefined ? 'p50' : 'p99'} is missing`
  const [median, high] = [parseDuration(p50), parseDuration(p99)]
  if (median <= 0) return `${path}.p50 ${p50}: must be more than 0`
  return high < median ? `${path}.p99 ${p99}: must not be less than p50 (${p50})` : undefined
}

function quantilesError(quantiles: Readonly<Record<string, string>>, path: string): string | undefined {
  const points = pointsOf(quantiles)
  const strange = Object.keys(quantiles).find(share => !/^(0(\.\d+)?|1(\.0+)?)$/.test(share))
  if (strange !== undefined) return `${path}: ${JSON.stringify(strange)} is not a share from 0 to 1`
  if (points[0]?.[0] !== 0 || points.at(-1)?.[0] !== 1) return `${path}: the shares 0 (shortest) and 1 (longest) must be there`
  const fall = points.findIndex(([, ms], index) => index > 0 && ms < points[index - 1]![1])
  return fall < 0 ? undefined : `${path}: ${points[fall]![0]} is shorter than ${points[fall - 1]![0]}; a higher share takes longer`
}

/** What {@link spreadError} has found in order. */
export function samplerOf({ fixed, p50, p99, quantiles }: Spread): Sampler {
  if (quantiles !== undefined) {
    const points = pointsOf(quantiles)
    return random => interpolate(points, random.next())
  }
  if (p50 !== undefined && p99 !== undefined) {
    const mu = Math.log(parseDuration(p50))
    const sigma = (Math.log(parseDuration(p99)) - mu) / z99
    return random => Math.exp(mu + sigma * random.normal())
  }
  const ms = parseDuration(fixed ?? '0s')
  return () => ms
}

function pointsOf(quantiles: Readonly<Record<string, string>>): (readonly [share: number, ms: number])[] {
  return Object.entries(quantiles)
    .map(([share, text]) => [Number(share), parseDuration(text)] as const)
    .sort(([a], [b]) => a - b)
}

function interpolate(points: readonly (readonly [share: number, ms: number])[], share: number): number {
  const above = Math.max(
    1,
    points.findIndex(([at]) => at > share),
  )
  const [fromShare, fromMs] = points[above - 1]!
  const [toShare, toMs] = points[above]!
  return fromMs + ((toMs - fromMs) * (share - fromShare)) / (toShare - fromShare)
}
