import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { EventQueue } from './event-queue.ts'
import { SeededRandom } from './seeded-random.ts'

test('returns events by time, and events of the same time in insertion order', () => {
  const random = new SeededRandom(3)
  const queue = new EventQueue<{ atMs: number; number: number }>()
  let pending: { atMs: number; number: number }[] = []
  for (let number = 0; number < 5_000; number++) {
    if (random.next() < 0.55) {
      const event = { atMs: Math.floor(random.next() * 50), number }
      queue.add(event.atMs, event)
      pending.push(event)
    } else {
      pending = pending.toSorted((a, b) => a.atMs - b.atMs)
      equal(queue.nextMs, pending[0]?.atMs ?? Number.POSITIVE_INFINITY)
      deepEqual(queue.pop(), pending.shift())
    }
    equal(queue.size, pending.length)
  }
})
