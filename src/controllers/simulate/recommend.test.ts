import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { defaultProfile } from './profile.ts'
import { compareCosts, recommend, sizesOf } from './recommend.ts'
import { chartLines, drawSvg } from './report/index.ts'
import type { SimulationResult } from './simulate-fleet.ts'

const wait = (p99Ms: number) => ({ count: 100, meanMs: 1, p50Ms: 1, p99Ms, maxMs: p99Ms })
const result = (max: number, changeMs: number, driftMs: number, peak = max): SimulationResult => ({
  max,
  hours: 24,
  wait: { all: wait(driftMs), Change: wait(changeMs), DriftCheck: wait(driftMs) },
  runEnded: 100,
  failed: 3,
  queuedAtEnd: 0,
  utilization: 0.5,
  workers: { mean: max / 2, peak, runStarted: 100 },
  workerHours: 12 * max,
  lastEndMs: 1,
  slowestTenant: { name: 'tenant-0', meanMs: 1 },
})
const target = { changeMs: 60_000, driftCheckMs: 360_000 }

test('sizes are spaced evenly over the range, including both ends', () => {
  deepEqual(sizesOf(20, 200), [20, 40, 60, 80, 100, 120, 140, 160, 180, 200])
  deepEqual(sizesOf(3, 5), [3, 4, 5])
  deepEqual(sizesOf(7, 7), [7])
})

test('recommends the smallest size that meets both targets, or explains what would help', () => {
  const results = [result(10, 500_000, 9_000_000), result(20, 30_000, 900_000), result(30, 20_000, 30_000), result(40, 20_000, 20_000)]
  equal(recommend(results, target).max, 30)
  match(recommend(results.slice(2), target).text, /try a lower range/)
  match(recommend(results.slice(0, 2), target).text, /try a higher range/)
  const slowStart = recommend([result(40, 90_000, 90_000, 31)], target)
  equal(slowStart.max, undefined)
  match(slowStart.text, /at most 31 workers were used.*--lifecycle Warm/)
})

test('compares the cost with a dedicated Pod for each Stack around the clock', () => {
  const cost = compareCosts(result(10, 1, 1), 100, defaultProfile)
  equal(cost.workers, 120 * 0.05)
  equal(cost.podPerStack, 100 * 24 * 0.05)
  equal(cost.share, 0.05)
})

test('the chart is at most 80 columns wide, and the SVG is complete', () => {
  const results = [result(20, 400_000, 36_000_000), result(200, 500, 20_000)]
  const lines = chartLines(results, 10_000, defaultProfile, target)
  for (const line of lines) ok([...line].length <= 80, `${[...line].length} columns: ${line}`)
  ok(
    lines.some(line => /^ 20 {3}█+░+ 10h$/.test(line)),
    lines.join('\n'),
  )
  ok(
    lines.some(line => /^200 ✓ █+░+ 20s$/.test(line)),
    lines.join('\n'),
  )
  const svg = drawSvg(results, 10_000, { ...defaultProfile, price: { ...defaultProfile.price, currency: '<&' } }, target)
  match(svg, /^<svg .*&lt;&amp; per day.*<\/svg>\n$/s)
  ok(!svg.includes('NaN') && !svg.includes('Infinity'))
})
