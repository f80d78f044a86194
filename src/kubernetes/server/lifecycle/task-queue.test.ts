import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as macrotask } from 'node:timers/promises'
import type { Timers } from '../../util/index.ts'
import { TaskQueue } from './task-queue.ts'

test('runs a key once at a time, and again when it is added while it runs', async () => {
  const queue = new TaskQueue(() => {})
  const log: string[] = []
  const first = Promise.withResolvers<void>()
  queue.add('a', async () => {
    log.push('first starts')
    await first.promise
    log.push('first ends')
  })
  await macrotask()
  queue.add('a', async () => void log.push('superseded'))
  queue.add('a', async () => void log.push('last'))
  queue.add('b', async () => void log.push('b'))
  await macrotask()
  deepEqual(log, ['first starts', 'b'])
  first.resolve()
  await macrotask()
  deepEqual(log, ['first starts', 'b', 'first ends', 'last'])
  await queue.stop()
})

test('runs at most 64 tasks at the same time', async () => {
  const queue = new TaskQueue(() => {})
  const release = Promise.withResolvers<void>()
  let running = 0
  for (let i = 0; i < 100; i++) {
    queue.add(String(i), async () => {
      running++
      await release.promise
    })
  }
  await macrotask()
  equal(running, 64)
  release.resolve()
  await macrotask()
  equal(running, 100)
  await queue.stop()
})

test('retries a task that throws after 100 ms, doubling up to 30 s, and starts over after a success', async () => {
  const delays: number[] = []
  let fire: (() => void) | undefined
  let nowMs = 0
  const timers: Timers = {
    nowMs: () => nowMs,
    after: (delayMs, run) => {
      delays.push(delayMs)
      fire = () => {
        nowMs += delayMs
        run()
      }
      return () => {}
    },
  }
  const errors: string[] = []
  const queue = new TaskQueue((error, key) => errors.push(`${key}: ${(error as Error).message}`), timers)
  let failures = 11
  const task = async () => {
    if (failures-- > 0) throw new Error('conflict')
  }
  queue.add('a', task)
  await macrotask()
  while (failures > 0) {
    fire?.()
    await macrotask()
  }
  deepEqual(delays, [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000])
  deepEqual(errors, Array(11).fill('a: conflict'))
  fire?.()
  await macrotask()
  failures = 1
  queue.add('a', task)
  await macrotask()
  equal(delays.at(-1), 100)
  await queue.stop()
})

test('stop waits for the tasks that run and drops those that wait', async () => {
  const queue = new TaskQueue(() => {})
  const release = Promise.withResolvers<void>()
  let isEnded = false
  queue.add('a', async () => {
    await release.promise
    isEnded = true
  })
  await macrotask()
  queue.add('a', async () => {
    throw new Error('must not run')
  })
  const stopped = queue.stop()
  queue.add('b', async () => {
    throw new Error('must not run')
  })
  release.resolve()
  await stopped
  equal(isEnded, true)
})
