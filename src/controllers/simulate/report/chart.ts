import type { Profile } from '../profile.ts'
import { compareCosts, meetsTarget, type WaitTarget } from '../recommend.ts'
import type { SimulationResult } from '../simulate-fleet.ts'
import { formatCount, formatPrice, formatRoundedDuration } from './format.ts'

const barWidth = 56

/** A table of the sizes and a chart of their waits, at most 80 columns wide. */
export function chartLines(results: readonly SimulationResult[], stacks: number, profile: Profile, target: WaitTarget): string[] {
  const { currency } = profile.price
  const header = ['max', 'mean', 'peak', 'util', 'change p50', 'p99', 'drift p50', 'p99', `${currency}/day`, 'of pods']
  const rows = results.map(result => {
    const { wait, workers } = result
    const cost = compareCosts(result, stacks, profile)
    return [
      String(result.max),
      workers.mean.toFixed(1),
      String(workers.peak),
      `${Math.round(100 * result.utilization)}%`,
      formatRoundedDuration(wait.Change.p50Ms),
      formatRoundedDuration(wait.Change.p99Ms),
      formatRoundedDuration(wait.DriftCheck.p50Ms),
      formatRoundedDuration(wait.DriftCheck.p99Ms),
      formatPrice(cost.workers),
      `${(100 * cost.share).toFixed(1)}%`,
    ]
  })
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map(row => row[column]!.length)))
  const table = [header, ...rows].map(row => row.map((cell, column) => cell.padStart(widths[column]!)).join('  '))
  return [...table, '', ...bars(results, target)]
}

/** A bar for each size with the 99th percentile of the waits of changes and of drift checks, on a logarithmic scale from 0.1 s. */
function bars(results: readonly SimulationResult[], target: WaitTarget): string[] {
  const longest = Math.max(...results.flatMap(({ wait }) => [wait.Change.p99Ms, wait.DriftCheck.p99Ms]), 1_000)
  const columns = (ms: number) => Math.max(0, Math.round((barWidth * Math.log(Math.max(ms, 100) / 100)) / Math.log(longest / 100)))
  const width = Math.max(...results.map(({ max }) => String(max).length), 3)
  const lines = results.map(result => {
    const { Change, DriftCheck } = result.wait
    const change = columns(Change.p99Ms)
    const bar = '█'.repeat(change) + '░'.repeat(Math.max(0, columns(DriftCheck.p99Ms) - change))
    return `${String(result.max).padStart(width)} ${meetsTarget(result, target) ? '✓' : ' '} ${bar} ${formatRoundedDuration(Math.max(Change.p99Ms, DriftCheck.p99Ms))}`
  })
  return [`p99 wait: █ changes, ░ drift checks (logarithmic scale, 0.1s to ${formatRoundedDuration(longest)})`, ...lines]
}

/** One line that summarizes the simulated load. */
export function summaryLine(result: SimulationResult, stacks: number): string {
  const { all, Change } = result.wait
  const share = all.count === 0 ? 0 : Change.count / all.count
  return `${formatCount(stacks)} Stacks: ${formatCount(all.count)} Runs in ${result.hours}h, ${(100 * share).toFixed(1)}% of them changes`
}
