import { readFileSync, writeFileSync } from 'node:fs'
import { ProfileError } from '../../api/index.ts'
import {
  chartLines,
  compareCosts,
  defaultProfile,
  drawSvg,
  formatCount,
  formatPrice,
  formatRoundedDuration,
  type Profile,
  parseSimulationProfile,
  recommend,
  simulateSizes,
  sizesOf,
  summaryLine,
} from '../../controllers/simulate/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { CliError, usageError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'
import { note, print } from '../terminal.ts'

export type SimulateOptions = {
  stacks: number
  tenants: number
  interval: string
  profile?: string
  workers?: { from: number; to: number }
  slots: number
  lifecycle: 'OneShot' | 'Warm'
  min?: number
  wait: string
  hours: number
  seed: number
  svg?: string
  output?: 'json' | 'yaml'
}

/** `oarlock simulate`: estimates how many workers a fleet needs, how long its Runs wait and what that costs. Does not contact a server. */
export async function simulate(options: SimulateOptions): Promise<void> {
  const { stacks, tenants, hours, seed, slots, lifecycle, min, svg, output } = options
  if (tenants > stacks) throw usageError(`--tenants ${tenants} must not exceed --stacks ${stacks}`, 'every tenant has at least one Stack')
  const profile = options.profile === undefined ? defaultProfile : readProfile(options.profile)
  const intervalMs = parseDuration(options.interval)
  const fleet = { stacks, tenants, intervalMs: intervalMs === 0 ? undefined : intervalMs, profile, hours, seed }
  const changeMs = parseDuration(options.wait)
  const target = { changeMs, driftCheckMs: Math.max(changeMs, intervalMs / 10) }
  const pool = { slots, lifecycle, ...(min !== undefined && { min }) }
  const { from, to } = options.workers ?? { from: 10, to: 100 }
  const startedMs = performance.now()
  const results = await simulateSizes(fleet, pool, sizesOf(from, to))
  // A pool that is too small executes fewer Runs, so the load is reported for the largest.
  const largest = results.at(-1)
  if (!largest) return
  const tookMs = performance.now() - startedMs
  const recommendation = recommend(results, target)
  if (svg !== undefined) writeFileSync(svg, drawSvg(results, stacks, profile, target))
  if (output !== undefined) {
    const sizes = results.map(result => ({ ...result, costPerDay: compareCosts(result, stacks, profile) }))
    print(await serialize({ fleet, pool, target, sizes, recommendation }, output))
    return
  }
  const { currency, perPodHour } = profile.price
  const chosen = results.find(({ max }) => max === recommendation.max) ?? largest
  const cost = compareCosts(chosen, stacks, profile)
  print(`${summaryLine(largest, stacks)}; ${lifecycle} workers, slots: ${slots}`)
  print('')
  for (const line of chartLines(results, stacks, profile, target)) print(line)
  print('')
  print(
    `Target: p99 wait of changes within ${formatRoundedDuration(target.changeMs)}, of drift checks within ${formatRoundedDuration(target.driftCheckMs)}`,
  )
  print(`Recommendation: ${recommendation.text}`)
  print(
    `Cost: ${formatPrice(cost.workers)} ${currency} per day with at most ${chosen.max} workers. For comparison, one Pod per Stack: ${formatCount(stacks)} × 24h × ${perPodHour} = ${formatPrice(cost.podPerStack)} ${currency} per day`,
  )
  if (options.profile === undefined) note('the default profile is an assumption; describe your own Runs with --profile (docs/simulate.md)')
  note(`simulated ${results.length} ${results.length === 1 ? 'size' : 'sizes'} in ${formatRoundedDuration(tookMs)}`)
}

function readProfile(file: string): Profile {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new CliError(`cannot read --profile ${file}: ${(error as Error).message}`, { exitCode: exitCodes.usage, cause: error })
  }
  try {
    return parseSimulationProfile(JSON.parse(text))
  } catch (error) {
    const hint = 'docs/simulate.md has a profile with all fields'
    if (error instanceof ProfileError) throw usageError(`--profile ${file}: ${error.message}`, hint)
    throw usageError(`--profile ${file} is not JSON: ${(error as Error).message}`, hint)
  }
}
