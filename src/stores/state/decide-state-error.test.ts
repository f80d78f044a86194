import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideStateError } from './decide-state-error.ts'

for (const [expected, newest, reason] of [
  [0, 0, undefined],
  [0, 5, undefined],
  [1, 0, 'StateMissing'],
  [7, 0, 'StateMissing'],
  [7, 6, 'StateRegressed'],
  [7, 7, undefined],
  [7, 8, undefined],
] as const) {
  test(`a Run that requires version ${expected} of ${newest === 0 ? 'no state' : `version ${newest}`}: ${reason ?? 'starts'}`, () => {
    deepEqual(decideStateError(expected, newest), reason && { reason, expected, newest })
  })
}
