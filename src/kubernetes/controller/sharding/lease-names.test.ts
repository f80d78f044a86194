import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { slotOfLease } from './lease-names.ts'

test('only the names that slots are given are slots: no leading zero, and none that a ring cannot have', () => {
  const names = ['r-0', 'r-61', 'r-62', 'r-00', 'r-01', 'r-ring', 'r-', 'r-1x', 'q-1', 'r-1-2']
  deepEqual(
    names.filter(name => slotOfLease('r', name) !== undefined),
    ['r-0', 'r-61'],
  )
})
