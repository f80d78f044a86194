import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { PhaseClock } from './phase-clock.ts'

test('each phase is as long as the time until the next one, or the end; one that did not begin has no duration', () => {
  let nowMs = 5_000
  const clock = new PhaseClock(() => nowMs)
  deepEqual(clock.enter('preparing'), {})
  nowMs += 412.4
  deepEqual(clock.enter('planning'), { preparing: 0.412 })
  nowMs += 2_000
  deepEqual(clock.enter(undefined), { preparing: 0.412, planning: 2 })
})
