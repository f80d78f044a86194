import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises'
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
  // A pass that was requested too often would run in one of these iterations.
  for (let i = 0; i < 20; i++) await nextIteration()
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

test('stops while it waits for a wake-up', async () => {
  const passed = Promise.withResolvers<void>()
  const loop = start(async () => {
    passed.resolve()
    return undefined
  })
  await passed.promise
  await nextIteration()
  await loop.stop()
})

test('stops after the pass in progress', async () => {
  const started = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let isFinished = false
  const loop = start(async () => {
    started.resolve()
    await released.promise
    isFinished = true
    return undefined
  })
  await started.promise
  const stopped = loop.stop()
  released.resolve()
  await stopped
  assert.equal(isFinished, true)
})

test('stops during the pause after a long pass', async () => {
  let passes = 0
  const passed = Promise.withResolvers<void>()
  const loop = start(async () => {
    passes++
    await sleep(20) // The pause follows from the measured duration of a pass.
    loop.wake()
    passed.resolve()
    return undefined
  })
  await passed.promise
  await nextIteration()
  await loop.stop()
  assert.equal(passes, 1)
})
