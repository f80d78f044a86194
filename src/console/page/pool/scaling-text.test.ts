import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { scalingReason } from './scaling-text.ts'

for (const [to, min, max, queued, busy, reason] of [
  [2, 0, 4, 1, 1, '1 Run queued, 1 worker busy'],
  [4, 0, 4, 9, 0, '9 Runs queued: limited to its maximum of 4'],
  [4, 0, 4, 0, 4, '4 workers busy'],
  [1, 1, 4, 0, 0, 'no Run queued: its minimum of 1'],
  [0, 0, 4, 0, 0, 'no Run queued, no worker busy'],
] as const)
  test(`the reason of ${to} workers with ${queued} Runs queued and ${busy} workers busy`, () => {
    equal(scalingReason({ to, min, max, queued, busy }), reason)
  })
