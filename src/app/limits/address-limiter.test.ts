import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { AddressLimiter } from './address-limiter.ts'

const limits = { concurrent: 4, concurrentPerAddress: 2, waitingPerAddress: 3, waiting: 4 }

/** Calls that run until they are finished by name. */
function setUp() {
  const limiter = new AddressLimiter(limits)
  const started: string[] = []
  const running = new Map<string, () => void>()
  const call = (address: string, name: string) =>
    limiter.run(address, async () => {
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

test('an address with many calls waits for its own, and another address does not', async () => {
  const { call, started, finish, running } = setUp()
  const calls = [call('a', 'a1'), call('a', 'a2'), call('a', 'a3'), call('a', 'a4'), call('a', 'a5')]
  await rejects(call('a', 'a6'), { reason: 'TooManyRequests' })
  calls.push(call('b', 'b1'))
  deepEqual(started, ['a1', 'a2', 'b1'])
  await finish('a1')
  deepEqual(started, ['a1', 'a2', 'b1', 'a3'])
  for (const name of ['a2', 'a3', 'a4', 'a5', 'b1']) await finish(name)
  await Promise.all(calls)
  equal(running.size, 0)
})

test('addresses are served round-robin when all calls together are too many', async () => {
  const { call, started, finish } = setUp()
  const calls = ['a1', 'a2', 'b1', 'b2', 'a3', 'a4', 'c1', 'd1'].map(name => call(name.slice(0, 1), name))
  deepEqual(started, ['a1', 'a2', 'b1', 'b2'])
  await finish('b1')
  await finish('b2')
  deepEqual(started.slice(4), ['c1', 'd1'])
  for (const name of ['a1', 'a2', 'a3', 'a4', 'c1', 'd1']) await finish(name)
  await Promise.all(calls)
})

test('beyond the limit of waiting calls the address with the most loses its newest', async () => {
  const { call, started, finish } = setUp()
  const calls = ['a1', 'a2', 'b1', 'b2', 'a3', 'a4'].map(name => call('ab'.includes(name.slice(0, 1)) ? name.slice(0, 1) : '', name))
  const newest = rejects(call('a', 'a5'), { reason: 'TooManyRequests' })
  calls.push(call('c', 'c1'), call('d', 'd1'))
  await newest
  for (const name of ['a1', 'a2', 'b1', 'b2', 'a3', 'a4', 'c1', 'd1']) await finish(name)
  await Promise.all(calls)
  equal(started.length, 8)
})

for (const [one, other, isShared] of [
  ['2001:db8::1', '2001:db8:0:0:ffff::2', true],
  ['2001:db8::1', '2001:db8:0:1::1', false],
  ['::ffff:10.0.0.1', '::ffff:10.0.0.2', false],
  ['fe80::1%eth0', 'fe80::2', true],
] as const) {
  test(`${one} and ${other} ${isShared ? 'share a limit' : 'have a limit each'}`, async () => {
    const { call, started, finish } = setUp()
    const calls = [call(one, '1'), call(one, '2'), call(other, '3')]
    equal(started.length, isShared ? 2 : 3)
    for (const name of ['1', '2', '3']) await finish(name)
    await Promise.all(calls)
  })
}
