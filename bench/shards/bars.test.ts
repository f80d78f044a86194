import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { unmetFaults, unmetMemory, unmetThroughput } from './bars.ts'

const fault = {
  ...{ 'Lease, s': 4, reconciles: 100, 'two at work on a key': 2, 'of these: the call begun before the pause': 2 },
  ...{ 'began with a lower fence': 0, 'writes accepted': 50, 'writes of a lower fence': 0, 'max, s': 6, 'most moves of a key': 5 },
}

test('faults: what is at the bar meets it', () => {
  deepEqual(unmetFaults('kill', fault), [])
  deepEqual(unmetFaults('restart', { ...fault, 'max, s': 2, 'most moves of a key': 2 }), [])
})

for (const [change, want] of [
  [{ 'max, s': 6.01 }, 'max, s is 6.01, the bar is <= 6'],
  [{ 'max, s': Number.NaN }, 'max, s is NaN, the bar is <= 6'],
  [{ reconciles: 0 }, 'reconciles is 0, the bar is >= 1'],
  [{ 'writes accepted': 0 }, 'writes accepted is 0, the bar is >= 1'],
  [{ 'writes of a lower fence': 1 }, 'writes of a lower fence is 1, the bar is <= 0'],
  [{ 'began with a lower fence': 1 }, 'began with a lower fence is 1, the bar is <= 0'],
  [{ 'two at work on a key': 3 }, 'two at work on a key, but for the call begun before a pause is 1, the bar is <= 0'],
] as const)
  test(`faults: ${want} is reported`, () => deepEqual(unmetFaults('cut', { ...fault, ...change }), [want]))

test('restart: more than 2 s or two moves are reported', () => {
  deepEqual(unmetFaults('restart', { ...fault, 'max, s': 2.5, 'most moves of a key': 3 }), [
    'max, s is 2.5, the bar is <= 2',
    'most moves of a key is 3, the bar is <= 2',
  ])
})

test('throughput: below 4.5 times one replica is reported', () => {
  const rows = (ratio: number) => [{ 'ratio, median of pairs': 1 }, { 'ratio, median of pairs': ratio }]
  deepEqual(unmetThroughput(rows(4.5)), [])
  equal(unmetThroughput(rows(4.49)).length, 1)
  equal(unmetThroughput([{ 'ratio, median of pairs': 5 }]).length, 1)
})

test('memory: each of RSS, heap and received bytes above 35 % of a single replica is reported, of each replica', () => {
  const single = { replica: 'single', 'of a single one, %': 100, 'heap of a single one, %': 100, 'received of a single one, %': 100 }
  const shared = { replica: '1 of 5', 'of a single one, %': 35, 'heap of a single one, %': 35, 'received of a single one, %': 35 }
  deepEqual(unmetMemory([single, shared]), [])
  for (const column of ['of a single one, %', 'heap of a single one, %', 'received of a single one, %'])
    deepEqual(unmetMemory([single, { ...shared, [column]: 35.1 }, shared]), [`1 of 5: ${column} is 35.1, the bar is <= 35`])
  equal(unmetMemory([single]).length, 1)
})
