import { equal, match, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { RequestThread } from './worker-thread.ts'

const script = 'kubernetes/util/echo-thread.testing'

test('a request that the thread throws on rejects, and its end is reported once', async () => {
  const ends: Error[] = []
  const thread = new RequestThread<string, string>(script, { onEnd: reason => ends.push(reason) })
  equal(await thread.request('hello'), 'hello')
  await rejects(thread.request('throw'), /echo-thread\.testing failed: asked to throw/)
  await thread.terminate()
  equal(ends.length, 1)
  await rejects(thread.request('hello'), /failed: asked to throw/)
})

test('terminating rejects the pending request', async () => {
  const thread = new RequestThread<string, string>(script)
  const pending = thread.request('never').catch(error => error.message)
  await thread.terminate()
  match(await pending, /has ended/)
})
