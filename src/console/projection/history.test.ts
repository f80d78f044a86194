import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Scaling } from '../protocol/index.ts'
import { History } from './history.ts'

const startMs = Date.parse('2026-06-01T10:00:00Z')
const scaling = (pool: string, atMs: number): Scaling => ({ pool, atMs, from: 0, to: 1, min: 0, max: 2, queued: 1, busy: 0 })

test('the last hour has a value for each 10 s, and a day has one for each minute, with the sum of Runs that ended', () => {
  const history = new History()
  for (let index = 0; index < 720; index++)
    history.add({ atMs: startMs + index * 10_000, values: { workers: index, runsSucceeded: 1, ...(index > 700 && { busyWorkers: 2 }) } })
  const nowMs = startMs + 719 * 10_000
  const hour = history.facts(nowMs, 60)
  deepEqual([hour.timesMs.length, hour.series.workers?.at(-1), hour.series.runsSucceeded?.at(-1)], [360, 719, 1])
  deepEqual([hour.series.busyWorkers?.[0], hour.series.busyWorkers?.at(-1)], [null, 2])
  deepEqual([hour.everyMs, history.facts(nowMs, 1_440).everyMs], [10_000, 60_000])
  const day = history.facts(nowMs, 1_440)
  deepEqual([day.timesMs.length, day.series.workers?.at(-1), day.series.runsSucceeded?.at(-1)], [120, 719, 6])
})

test('when the clock was set back, what is later than the present is removed, and nothing when it was corrected by a few seconds', () => {
  const history = new History()
  const add = (atMs: number) => history.add({ atMs, values: { runsSucceeded: 1 } })
  for (let index = 0; index < 360; index++) add(startMs + index * 10_000)
  for (const minute of [5, 40]) history.add({ atMs: startMs + minute * 60_000, scaling: scaling('default', startMs + minute * 60_000) })
  const setBackMs = startMs + 10 * 60_000
  for (let index = 0; index < 12; index++) add(setBackMs + index * 10_000)
  add(setBackMs + 105_000)
  const nowMs = setBackMs + 110_000
  history.add({ atMs: nowMs, scaling: scaling('default', nowMs) })
  for (const minutes of [60, 1_440]) {
    const { timesMs, series } = history.facts(nowMs, minutes)
    deepEqual([timesMs[0], timesMs.at(-1)], [startMs, minutes === 60 ? nowMs : setBackMs + 60_000])
    deepEqual(
      timesMs,
      timesMs.toSorted((a, b) => a - b),
    )
    // Those of the first 10 minutes, the one of the minute or the 10 s in which the clock was set back to, and those since.
    equal(
      series.runsSucceeded?.reduce<number>((sum, count) => sum + (count ?? 0), 0),
      minutes === 60 ? 74 : 79,
    )
  }
  deepEqual(
    history.poolFacts(nowMs, 60, 'default').scalings.map(({ atMs }) => atMs),
    [startMs + 5 * 60_000, nowMs],
  )
})

test('it is bounded, and another history that adds its entries has the same', () => {
  const history = new History()
  const days = 3 * 8_640
  for (let index = 0; index < days; index++) history.add({ atMs: startMs + index * 10_000, values: { workers: index, runsFailed: 1 } })
  for (let index = 0; index < 600; index++) history.add({ atMs: startMs + index, scaling: scaling('default', startMs + index) })
  const entries = [...history.entries()]
  equal(entries.length, 360 + 1_440 - 60 + 500)
  const other = new History()
  for (const entry of entries) other.add(entry)
  const nowMs = startMs + days * 10_000
  for (const minutes of [60, 1_440]) deepEqual(other.facts(nowMs, minutes), history.facts(nowMs, minutes))
})

test('while the process did not run there is a gap, not a line', () => {
  const history = new History()
  for (const atMs of [0, 10_000, 300_000]) history.add({ atMs: startMs + atMs, values: { workers: 1 } })
  deepEqual(history.facts(startMs + 300_000, 60).series.workers, [1, 1, null, 1])
})

test('the series of a pool are not those of the fleet, nor of a pool whose name begins alike', () => {
  const history = new History()
  history.add({ atMs: startMs, values: { workers: 3, 'pool/a/workers': 1, 'pool/ab/workers': 2 } })
  history.add({ atMs: startMs, scaling: scaling('a', startMs) })
  history.add({ atMs: startMs, scaling: scaling('ab', startMs) })
  deepEqual(history.facts(startMs, 60).series, { workers: [3] })
  const facts = history.poolFacts(startMs, 60, 'a')
  deepEqual([facts.series, facts.scalings], [{ workers: [1] }, [scaling('a', startMs)]])
})
