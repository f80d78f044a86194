import { equal, match, rejects } from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { abortRequest } from './limited-requests.testing.ts'
import { RequestLimitError } from './limited-requests.ts'
import { LimitedThread } from './limited-thread.ts'

const open = (limits: { timeoutMs?: number; maxHeapMb?: number } = {}) =>
  new LimitedThread<string, string>('kubernetes/util/echo-thread.testing', {
    ...{ name: 'echo', timeoutMs: limits.timeoutMs ?? 60_000, maxHeapMb: limits.maxHeapMb ?? 64 },
  })

test('a request that takes too long is aborted, also in a loop that never yields, and the next one is answered', async () => {
  const thread = open({ timeoutMs: 500 })
  for (const request of ['never', 'loop']) {
    await rejects(thread.request(request), new RequestLimitError('echo', '0.5 s'))
    equal(await thread.request('hello'), 'hello')
  }
  await thread.close()
})

test('a request that takes too much memory is aborted, and the next one is answered', async () => {
  const thread = open({ maxHeapMb: 32 })
  await rejects(thread.request('fill'), (error: Error) => error instanceof RequestLimitError && error.limit === '32 MB of memory')
  equal(await thread.request('hello'), 'hello')
  await thread.close()
})

test('an error that the thread throws is no limit', async () => {
  const thread = open()
  await rejects(thread.request('throw'), (error: Error) => !(error instanceof RequestLimitError) && /asked to throw/.test(error.message))
  equal(await thread.request('hello'), 'hello')
  await thread.close()
})

test('a request that is aborted rejects with the reason of its signal when the thread has ended', async () => {
  const thread = open()
  const signal = await abortRequest(thread)
  await rejects(thread.request('hello', signal), signal.reason)
  equal(await thread.request('hello'), 'hello')
  await thread.close()
})

test('a thread ends 30 s after its last request, and the next one starts another', { timeout: 30_000 }, async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const started = once(process, 'worker') as Promise<[Worker]>
  const thread = open()
  equal(await thread.request('hello'), 'hello')
  const [worker] = await started
  const exit = once(worker, 'exit')
  t.mock.timers.tick(29_999)
  equal(await thread.request('hello'), 'hello')
  t.mock.timers.tick(29_999)
  equal(await thread.request('hello'), 'hello')
  equal(worker.threadId > 0, true, 'a request of the same thread')
  t.mock.timers.tick(30_000)
  await exit
  equal(await thread.request('hello'), 'hello')
  await thread.close()
})

test('closing ends the thread and its request', async () => {
  const started = once(process, 'worker') as Promise<[Worker]>
  const thread = open()
  const pending = thread.request('loop').catch(error => error.message)
  const [worker] = await started
  let hasEnded = false
  worker.once('exit', () => {
    hasEnded = true
  })
  await thread.close()
  equal(hasEnded, true)
  match(await pending, /has ended/)
})
