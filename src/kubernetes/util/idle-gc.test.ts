import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { CollectionSchedule, checkIntervalMs } from './idle-gc.ts'

const mb = 1024 * 1024

/** Seconds at which it collects; `at` returns utilization and bytes of history at a second. */
function collections(seconds: number, at: (second: number) => [utilization: number, historyBytes: number]): number[] {
  const schedule = new CollectionSchedule()
  const found: number[] = []
  for (let second = checkIntervalMs / 1_000; second <= seconds; second += checkIntervalMs / 1_000)
    if (schedule.isDue(...at(second))) found.push(second)
  return found
}

test('an idle process collects at doubling intervals of at most 10 minutes', () => {
  deepEqual(
    collections(2_500, () => [0, 0]),
    [10, 30, 70, 150, 310, 630, 1_230, 1_830, 2_430],
  )
})

test('a busy process does not collect, and the intervals start again after it', () => {
  deepEqual(
    collections(200, second => [second >= 40 && second <= 100 ? 0.5 : 0, 0]),
    [10, 30, 110, 130, 170],
  )
})

test('history that expires while the process is idle is collected immediately', () => {
  deepEqual(
    collections(300, second => [0, second < 200 ? 20 * mb : mb]),
    [10, 30, 70, 150, 200],
  )
})

test('history that expired while the process was busy is collected when it is idle', () => {
  deepEqual(
    collections(300, second => [second >= 160 && second < 240 ? 0.5 : 0, second < 200 ? 20 * mb : mb]),
    [10, 30, 70, 150, 240, 260, 300],
  )
})

test('little history does not change the schedule', () => {
  deepEqual(
    collections(300, second => [0, second < 200 ? 2 * mb : mb]),
    [10, 30, 70, 150],
  )
})
