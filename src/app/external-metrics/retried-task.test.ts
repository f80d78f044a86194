import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualTimers } from '../../kubernetes/testing/index.ts'
import { RetriedTask } from './retried-task.ts'

/** A task that fails as often as `failures` says. */
function start(failures: number) {
  const timers = new VirtualTimers()
  const stopping = new AbortController()
  const errors: string[] = []
  let calls = 0
  const task = new RetriedTask({
    work: async () => {
      calls++
      if (calls <= failures) throw new Error(`failure ${calls}`)
    },
    onError: error => void errors.push(error.message),
    ...{ retryMs: 2_000, signal: stopping.signal, timers },
  })
  return { timers, stopping, errors, task, calls: () => calls }
}

test('a failure is cleared by the retry that succeeds', async () => {
  const { timers, task, errors, calls } = start(2)
  task.request()
  await task.idle
  equal(task.failure?.message, 'failure 1')
  for (const failure of ['failure 2', undefined]) {
    await timers.advance(2_000)
    equal(task.failure?.message, failure)
  }
  deepEqual([errors, calls(), timers.pending], [['failure 1', 'failure 2'], 3, 0])
})

test('requests during a failure do not add retries', async () => {
  const { timers, task, calls } = start(3)
  for (let count = 1; count <= 3; count++) {
    task.request()
    await task.idle
  }
  deepEqual([calls(), timers.pending], [3, 1])
  await timers.advance(2_000)
  deepEqual([calls(), timers.pending, task.failure], [4, 0, undefined])
})

test('a request during a call repeats it once', async () => {
  const { task, calls } = start(0)
  for (let count = 1; count <= 3; count++) task.request()
  await task.idle
  equal(calls(), 2)
})

test('nothing is retried after the signal aborted', async () => {
  const { timers, stopping, task, calls } = start(5)
  task.request()
  await task.idle
  stopping.abort()
  task.request()
  await task.idle
  deepEqual([calls(), timers.pending], [1, 0])
})
