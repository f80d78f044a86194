import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Heap } from './heap.ts'

type Item = { id: number; rank: number }

test('a tracked heap agrees with a sorted list after any sequence of put, move and delete', () => {
  const step = fc.record({ id: fc.nat(15), rank: fc.nat(9), what: fc.constantFrom('put', 'put', 'delete') })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), steps => {
      const isBefore = (a: Item, b: Item) => (a.rank !== b.rank ? a.rank < b.rank : a.id < b.id)
      const heap = new Heap<Item>(isBefore, { tracked: true })
      const items = Array.from({ length: 16 }, (_, id) => ({ id, rank: 0 }))
      const present = new Set<Item>()
      for (const { id, rank, what } of steps) {
        const item = items[id]!
        if (what === 'delete') assert.equal(heap.delete(item), present.delete(item))
        else {
          item.rank = rank
          heap.put(item)
          present.add(item)
        }
        const want = [...present].sort((a, b) => (isBefore(a, b) ? -1 : 1))
        assert.equal(heap.size, want.length)
        assert.equal(heap.peek(), want[0])
        assert.deepEqual([...heap.ordered()], want)
      }
    }),
  )
})

test('an untracked heap agrees with a sorted list after any sequence of push, pop and compact', () => {
  const step = fc.record({ rank: fc.nat(9), what: fc.constantFrom('push', 'push', 'pop', 'compact') })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), steps => {
      const isBefore = (a: Item, b: Item) => (a.rank !== b.rank ? a.rank < b.rank : a.id < b.id)
      const heap = new Heap<Item>(isBefore)
      let items: Item[] = []
      for (const [id, { rank, what }] of steps.entries()) {
        if (what === 'push') {
          heap.push({ id, rank })
          items.push({ id, rank })
          items.sort((a, b) => (isBefore(a, b) ? -1 : 1))
        } else if (what === 'pop') assert.deepEqual(heap.pop(), items.shift())
        else {
          heap.compact(item => item.rank !== rank)
          items = items.filter(item => item.rank !== rank)
        }
        assert.equal(heap.size, items.length)
        assert.deepEqual([...heap.ordered()], items)
      }
    }),
  )
})

test('put and delete throw on an untracked heap', () => {
  const heap = new Heap<number>((a, b) => a < b)
  assert.throws(() => heap.put(1), /tracked: true/)
  assert.throws(() => heap.delete(1), /tracked: true/)
})
