import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { SendBufferLimiter } from './send-buffer-limiter.ts'

function addSenders(lengths: Record<string, number>, limiter: SendBufferLimiter) {
  const cut: string[] = []
  const all = Object.entries(lengths).map(([name, writableLength]) => ({ name, writableLength, destroy: () => cut.push(name) }))
  for (const sender of all) limiter.add(sender)
  return {
    cut,
    set: (name: string, length: number) => Object.assign(all.find(sender => sender.name === name)!, { writableLength: length }),
  }
}

test('beyond the total limit, the clients with the largest buffers are disconnected', () => {
  const limiter = new SendBufferLimiter({ totalBytes: 100 })
  const { cut, set } = addSenders({ a: 10, b: 60, c: 30, d: 0 }, limiter)
  limiter.sweep()
  deepEqual(cut, [])
  set('a', 20)
  limiter.sweep()
  deepEqual(cut, ['b'])
  limiter.sweep()
  deepEqual(cut, ['b'])
})

test('a client that reads nothing is disconnected; one that reads slowly, or has read everything, is not', () => {
  const limiter = new SendBufferLimiter({ stalledSweeps: 3 })
  const { cut, set } = addSenders({ stuck: 10, growing: 10, slow: 100, quiet: 0 }, limiter)
  for (let i = 0; i < 9; i++) {
    set('growing', 11 + i)
    if (i % 2 === 0) set('slow', 90 - i)
    limiter.sweep()
  }
  deepEqual(cut.sort(), ['growing', 'stuck'])
})
