import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { EventHeap } from './event-heap.ts'
import { Random } from './random.ts'

test('events come by time, and of one moment in the order in which they were put: as a stable sort says', () => {
  const dice = new Random(3)
  const heap = new EventHeap<{ atMs: number; number: number }>()
  let waiting: { atMs: number; number: number }[] = []
  for (let number = 0; number < 5_000; number++) {
    if (dice.next() < 0.55) {
      const event = { atMs: Math.floor(dice.next() * 50), number }
      heap.put(event.atMs, event)
      waiting.push(event)
    } else {
      waiting = waiting.toSorted((a, b) => a.atMs - b.atMs)
      equal(heap.nextMs, waiting[0]?.atMs ?? Number.POSITIVE_INFINITY)
      deepEqual(heap.take(), waiting.shift())
    }
    equal(heap.size, waiting.length)
  }
})
