import { ok } from 'node:assert/strict'
import { test } from 'node:test'
import { simulateSharedWatch } from './shared-simulation.testing.ts'

const seeds = 500

test(`the cache of every client of a shared watch is the list of its selection, with ${seeds} seeds`, () => {
  let joins = 0
  let tooLate = 0
  for (let seed = 1; seed <= seeds; seed++) {
    const counts = simulateSharedWatch(seed)
    joins += counts.joins
    tooLate += counts.tooLate
  }
  ok(joins > seeds && tooLate > seeds / 50, `${joins} joins, ${tooLate} too late`)
})
