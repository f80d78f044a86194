import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { ClientLimiter, LimitExceededError } from './client-limiter.ts'

const limits = { concurrent: 4, concurrentPerClient: 2, waitingPerClient: 3, waiting: 4 }

/** Calls that run until they are finished by name. */
function setUp() {
  const limiter = new ClientLimiter(limits)
  const started: string[] = []
  const running = new Map<string, () => void>()
  const call = (client: string, name: string) =>
    limiter.run(client, async () => {
      started.push(name)
      const { promise, resolve } = Promise.withResolvers<void>()
      running.set(name, resolve)
      await promise
    })
  const finish = async (name: string) => {
    running.get(name)?.()
    running.delete(name)
    await new Promise(setImmediate)
  }
  return { call, started, finish, running }
}

test('a client with many calls waits for its own, and another client does not', async () => {
  const { call, started, finish, running } = setUp()
  const calls = [call('a', 'a1'), call('a', 'a2'), call('a', 'a3'), call('a', 'a4'), call('a', 'a5')]
  await rejects(call('a', 'a6'), LimitExceededError)
  calls.push(call('b', 'b1'))
  deepEqual(started, ['a1', 'a2', 'b1'])
  await finish('a1')
  deepEqual(started, ['a1', 'a2', 'b1', 'a3'])
  for (const name of ['a2', 'a3', 'a4', 'a5', 'b1']) await finish(name)
  await Promise.all(calls)
  equal(running.size, 0)
})

test('clients are served round-robin when all calls together are too many', async () => {
  const { call, started, finish } = setUp()
  const calls = ['a1', 'a2', 'b1', 'b2', 'a3', 'a4', 'c1', 'd1'].map(name => call(name.slice(0, 1), name))
  deepEqual(started, ['a1', 'a2', 'b1', 'b2'])
  await finish('b1')
  await finish('b2')
  deepEqual(started.slice(4), ['c1', 'd1'])
  for (const name of ['a1', 'a2', 'a3', 'a4', 'c1', 'd1']) await finish(name)
  await Promise.all(calls)
})

test('beyond the limit of waiting calls the client with the most loses its newest', async () => {
  const { call, started, finish } = setUp()
  const calls = ['a1', 'a2', 'b1', 'b2', 'a3', 'a4'].map(name => call('ab'.includes(name.slice(0, 1)) ? name.slice(0, 1) : '', name))
  const newest = rejects(call('a', 'a5'), LimitExceededError)
  calls.push(call('c', 'c1'), call('d', 'd1'))
  await newest
  for (const name of ['a1', 'a2', 'b1', 'b2', 'a3', 'a4', 'c1', 'd1']) await finish(name)
  await Promise.all(calls)
  equal(started.length, 8)
})
