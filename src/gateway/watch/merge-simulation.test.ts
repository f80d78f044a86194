import { test } from 'node:test'
import { simulateMerge } from './merge-simulation.testing.ts'

const seeds = 500

test(`the merged log has every event once, in order, with ${seeds} seeds`, () => {
  for (let seed = 1; seed <= seeds; seed++) simulateMerge(seed)
})
