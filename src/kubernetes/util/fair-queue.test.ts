import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { FairQueue, type FairQueueEntry } from './fair-queue.ts'

type Item = FairQueueEntry & { name: string }

const item = (name: string, priority = 0): Item => ({ name, priority, groupQueue: undefined })
const popAll = (queue: FairQueue<Item>) => {
  const names: string[] = []
  for (let next = queue.pop(); next; next = queue.pop()) names.push(next.name)
  return names
}

test('serves the groups of a priority round-robin, and each group in order', () => {
  const queue = new FairQueue<Item>()
  for (const name of ['a1', 'a2', 'a3', 'b1', 'c1']) queue.push(item(name), name[0] as string)
  deepEqual(popAll(queue), ['a1', 'b1', 'c1', 'a2', 'a3'])
})

test('serves a higher priority first, and reports the length of each', () => {
  const queue = new FairQueue<Item>()
  queue.push(item('low', -100), 'a')
  queue.push(item('high', 5), 'a')
  queue.push(item('normal'), 'a')
  deepEqual(queue.byPriority(), [
    { priority: 5, length: 1 },
    { priority: 0, length: 1 },
    { priority: -100, length: 1 },
  ])
  deepEqual(popAll(queue), ['high', 'normal', 'low'])
})

test('an entry whose priority is raised is served once, and its reference in the old group is removed', () => {
  const queue = new FairQueue<Item>()
  const items = Array.from({ length: 5_000 }, (_, index) => item(`${index}`))
  for (const each of items) queue.push(each, 'a')
  for (const each of items.slice(0, 4_999)) queue.raisePriority(each, 1)
  equal(queue.length, 5_000)
  const names = popAll(queue)
  deepEqual([names.length, new Set(names).size, names.at(-1)], [5_000, 5_000, '4999'])
})

test('clear removes all entries', () => {
  const queue = new FairQueue<Item>()
  queue.push(item('a'), 'a')
  queue.clear()
  deepEqual([queue.length, queue.pop()], [0, undefined])
})
