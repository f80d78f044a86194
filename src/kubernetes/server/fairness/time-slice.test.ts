import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { nextSlice } from './time-slice.ts'

test('at most one slice runs in an iteration of the event loop, in the order of the calls', async () => {
  const run: number[] = []
  const slices = [0, 1, 2, 3].map(async index => {
    await nextSlice()
    run.push(index)
  })
  const perIteration: number[] = []
  for (let seen = 0; seen < slices.length; ) {
    await nextIteration()
    perIteration.push(run.length - seen)
    seen = run.length
  }
  await Promise.all(slices)
  deepEqual(run, [0, 1, 2, 3])
  deepEqual(
    perIteration.filter(count => count > 0),
    [1, 1, 1, 1],
  )
})
