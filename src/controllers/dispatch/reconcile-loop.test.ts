import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reconcileLoop } from './reconcile-loop.ts'

/** Starts a loop. `wake` wakes it, `stop` ends it. */
function start(pass: () => Promise<number | undefined>) {
  const stopping = new AbortController()
  let wake: () => void = () => undefined
  const ended = reconcileLoop(
    stopping.signal,
    wakeLoop => {
      wake = wakeLoop
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

test('runs one pass at the start and one for any number of wake-ups in one event loop iteration', async () => {
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

test('a wake-up during a pass leads to one more pass', async () => {
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

test('runs a pass again after the delay that it returned', async () => {
  let passes = 0
  const done = Promise.withResolvers<void>()
  const loop = start(async () => {
    if (++passes === 3) done.resolve()
    return 1
  })
  await done.promise
  await loop.stop()
})

test('stops while waiting, while pausing, and during a pass', async () => {
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
