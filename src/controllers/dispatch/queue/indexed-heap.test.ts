import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IndexedHeap } from './indexed-heap.ts'

type Item = { id: number; rank: number }

test('property: against a sorted list: put, move, delete, in any order', () => {
  const step = fc.record({ id: fc.nat(15), rank: fc.nat(9), what: fc.constantFrom('put', 'put', 'delete') })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), steps => {
      const isBefore = (a: Item, b: Item) => (a.rank !== b.rank ? a.rank < b.rank : a.id < b.id)
      const heap = new IndexedHeap<Item>(isBefore)
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
