import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reconcileLoop } from './reconcile-loop.ts'

/** Runs a loop and gives its kick; `stop` ends it. */
function start(pass: () => Promise<number | undefined>) {
  const stopping = new AbortController()
  let wake: () => void = () => undefined
  const ended = reconcileLoop(
    stopping.signal,
    given => {
      wake = given
    },
    pass,
  )
  return {
    wake: () => wake(),
    stop: async () => {
      stopping.abort()
      await ended
    },
  }
}

test('one pass at the start, one for any number of kicks in a turn, none without', async () => {
  let passes = 0
  let passed = Promise.withResolvers<void>()
  const loop = start(async () => {
    passes++
    passed.resolve()
    return undefined
  })
  await passed.promise
  passed = Promise.withResolvers()
  for (let i = 0; i < 100; i++) loop.wake()
  await passed.promise
  await new Promise(resolve => setTimeout(resolve, 30))
  assert.equal(passes, 2)
  await loop.stop()
})

test('a wake during a pass leads to one more', async () => {
  let passes = 0
  const done = Promise.withResolvers<void>()
  const loop = start(async () => {
    if (++passes === 1) loop.wake()
    else done.resolve()
    return undefined
  })
  await done.promise
  await loop.stop()
  assert.equal(passes, 2)
})

test('a pass that asks for it is run again', async () => {
  let passes = 0
  const done = Promise.withResolvers<void>()
  const loop = start(async () => {
    if (++passes === 3) done.resolve()
    return 1
  })
  await done.promise
  await loop.stop()
})

test('it ends while it waits, while it pauses, and during a pass', async () => {
  const waiting = start(async () => undefined)
  await new Promise(resolve => setTimeout(resolve, 5))
  await waiting.stop()
  const slow = start(async () => {
    await new Promise(resolve => setTimeout(resolve, 20))
    return undefined
  })
  await new Promise(resolve => setTimeout(resolve, 5))
  slow.wake()
  await slow.stop()
})
