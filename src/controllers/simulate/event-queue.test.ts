import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { EventQueue } from './event-queue.ts'
import { SeededRandom } from './seeded-random.ts'

test('events come in order of time, and those of one moment in the order they were added, as a stable sort gives them', () => {
  const random = new SeededRandom(3)
  const queue = new EventQueue<{ atMs: number; number: number }>()
  let waiting: { atMs: number; number: number }[] = []
  for (let number = 0; number < 5_000; number++) {
    if (random.next() < 0.55) {
      const event = { atMs: Math.floor(random.next() * 50), number }
      queue.add(event.atMs, event)
      waiting.push(event)
    } else {
      waiting = waiting.toSorted((a, b) => a.atMs - b.atMs)
      equal(queue.nextMs, waiting[0]?.atMs ?? Number.POSITIVE_INFINITY)
      deepEqual(queue.take(), waiting.shift())
    }
    equal(queue.size, waiting.length)
  }
})
