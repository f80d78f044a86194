import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mapConcurrently } from './map-concurrently.ts'

test('results keep the order of the items, and at most 8 calls run at a time', async () => {
  const waiting: (() => void)[] = []
  let running = 0
  let most = 0
  const done = mapConcurrently([...Array(20).keys()], async item => {
    most = Math.max(most, ++running)
    await new Promise<void>(resolve => waiting.push(resolve))
    running--
    return item * 2
  })
  for (let finished = 0; finished < 20; finished++) {
    while (waiting.length === 0) await new Promise(setImmediate)
    waiting.pop()?.()
  }
  assert.deepEqual(
    await done,
    [...Array(20).keys()].map(item => item * 2),
  )
  assert.equal(most, 8)
})

test('after an error no further call is started, and the error is thrown when the running calls have ended', async () => {
  let started = 0
  let ended = 0
  const work = async (item: number) => {
    started++
    await new Promise(setImmediate)
    ended++
    if (item === 0) throw new Error('item 0 failed')
    return item
  }
  await assert.rejects(mapConcurrently([...Array(20).keys()], work), /item 0 failed/)
  assert.deepEqual([started, ended], [8, 8])
})
