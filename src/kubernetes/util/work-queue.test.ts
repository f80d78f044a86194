import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { VirtualClock } from '../../../test/support/virtual-clock.ts'
import { lowPriority, WorkQueue, type WorkQueueOptions } from '../controller/index.ts'

function make(options: Omit<WorkQueueOptions, 'timers'> = {}) {
  const time = new VirtualClock()
  return { time, queue: new WorkQueue({ ...options, timers: time }) }
}

async function drain(queue: WorkQueue): Promise<string[]> {
  const keys: string[] = []
  while (queue.length > 0) {
    const key = (await queue.get()) as string
    keys.push(key)
    queue.done(key)
  }
  return keys
}

test('returns keys in the order of their first add, once each', async () => {
  const { queue } = make()
  for (const key of ['a', 'b', 'a', 'c', 'b']) queue.add(key)
  equal(queue.length, 3)
  deepEqual(await drain(queue), ['a', 'b', 'c'])
})

test('returns higher priorities first, and raises the priority of a waiting key but never lowers it', async () => {
  const { queue } = make()
  queue.add('first', { priority: lowPriority })
  queue.add('second', { priority: lowPriority })
  queue.add('change')
  queue.add('urgent', { priority: 7 })
  queue.add('second')
  queue.add('change', { priority: lowPriority })
  deepEqual(await drain(queue), ['urgent', 'change', 'second', 'first'])
})

test('a delayed key that is added with a lower priority keeps its own, and gets a higher one', async () => {
  const { queue } = make()
  queue.add('resync', { delayMs: 10 })
  queue.add('change', { delayMs: 10, priority: lowPriority })
  for (const key of ['resync', 'low']) queue.add(key, { priority: lowPriority })
  queue.add('change', { priority: 7 })
  deepEqual([queue.priorityOf('change'), queue.priorityOf('resync'), queue.priorityOf('low')], [7, 0, lowPriority])
  deepEqual(await drain(queue), ['change', 'resync', 'low'])
})

test('a key that is added while it is processed is processed again, once', async () => {
  const { queue } = make()
  queue.add('a')
  const key = await queue.get()
  queue.add('a')
  queue.add('a')
  equal(queue.length, 0)
  queue.done(key as string)
  deepEqual(await drain(queue), ['a'])
})

test('a delayed key is returned when it is due; an earlier due time replaces a later one, and an immediate add replaces any', async () => {
  const { queue, time } = make()
  queue.add('a', { delayMs: 100 })
  queue.add('a', { delayMs: 50 })
  queue.add('a', { delayMs: 70 })
  queue.add('b', { delayMs: 60 })
  queue.add('b')
  deepEqual([queue.length, queue.delayed], [1, 1])
  deepEqual(await drain(queue), ['b'])
  await time.advance(49)
  equal(queue.length, 0)
  await time.advance(1)
  deepEqual(await drain(queue), ['a'])
  await time.advance(1_000)
  deepEqual([queue.length, queue.delayed], [0, 0])
})

test('the backoff of a key doubles from its base to its maximum, until the key is forgotten', async () => {
  const { queue, time } = make({ baseDelayMs: 5, maxDelayMs: 50 })
  const waits: number[] = []
  for (let attempt = 0; attempt < 6; attempt++) {
    queue.addRateLimited('a')
    const sinceMs = time.nowMs()
    while (queue.length === 0) await time.advance(1)
    waits.push(time.nowMs() - sinceMs)
    await drain(queue)
  }
  deepEqual(waits, [5, 10, 20, 40, 50, 50])
  equal(queue.failures('a'), 6)
  queue.addRateLimited('b')
  await time.advance(5)
  deepEqual(await drain(queue), ['b'])
  queue.forget('a')
  queue.addRateLimited('a')
  await time.advance(5)
  deepEqual(await drain(queue), ['a'])
})

test('supports a delay above the limit of setTimeout', async () => {
  const { queue, time } = make()
  const days = 86_400_000
  queue.add('a', { delayMs: 60 * days })
  await time.advance(59 * days)
  equal(queue.length, 0)
  await time.advance(days)
  equal(queue.length, 1)
})

test('get waits for a key, and resolves with undefined at shutdown', async () => {
  const { queue } = make()
  const waiting = [queue.get(), queue.get(), queue.get()]
  queue.add('a')
  equal(await waiting[0], 'a')
  queue.add('b', { delayMs: 10 })
  queue.shutdown()
  deepEqual(await Promise.all(waiting), ['a', undefined, undefined])
  queue.add('c')
  equal(await queue.get(), undefined)
  queue.done('a')
  deepEqual([queue.length, queue.running, queue.delayed], [0, 0, 0])
})

test('groups of one priority are served round-robin: a busy one delays another by one key', async () => {
  const { queue } = make({ groupOf: key => key.split('/')[0] as string })
  for (let index = 0; index < 1_000; index++) queue.add(`noisy/${index}`)
  queue.add('quiet/a')
  queue.add('calm/a')
  queue.add('quiet/b')
  queue.add('noisy/urgent', { priority: 1 })
  const order: string[] = []
  for (let index = 0; index < 8; index++) order.push((await queue.get()) as string)
  deepEqual(order, ['noisy/urgent', 'noisy/0', 'quiet/a', 'calm/a', 'noisy/1', 'quiet/b', 'noisy/2', 'noisy/3'])
  for (const key of order) queue.done(key)
  deepEqual(queue.byPriority(), [{ priority: 0, length: 996 }])
  equal(queue.length, 996)
})

test('a groupOf that throws does not lose the key', async () => {
  const { queue } = make({
    groupOf: () => {
      throw new Error('no group')
    },
  })
  queue.add('a')
  equal(await queue.get(), 'a')
})

test('retryRate limits the retries of all keys together, in addition to the backoff of each key', async () => {
  const { queue, time } = make({ baseDelayMs: 5, maxDelayMs: 1_000, retryRate: { qps: 10, burst: 2 } })
  for (const key of ['a', 'b', 'c', 'd']) queue.addRateLimited(key)
  const waiting: number[] = []
  for (const ms of [5, 94, 1, 100, 1_000]) {
    await time.advance(ms)
    waiting.push(queue.length)
  }
  deepEqual(waiting, [2, 2, 3, 4, 4])
  throws(() => make({ retryRate: { qps: 0, burst: 1 } }), /retryRate\.qps must be a number > 0, got 0/)
  throws(() => make({ retryRate: { qps: 1, burst: 0 } }), /retryRate\.burst/)
})

test('done without get throws', () => {
  const { queue } = make()
  throws(() => queue.done('a'), /done\("a"\) without get/)
  queue.add('a')
  throws(() => queue.done('a'), /without get/)
})

test('invariants 7 and 10: in 10,000 random schedules no key is processed twice at the same time, no add is lost and no entry remains', async () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd')
  const step = fc.oneof(
    fc.record({ do: fc.constant('add' as const), key, delayMs: fc.constantFrom(0, 0, 3, 20), priority: fc.constantFrom(-100, 0, 5) }),
    fc.record({ do: fc.constant('fail' as const), key }),
    fc.record({ do: fc.constant('work' as const), key }),
    fc.record({ do: fc.constant('finish' as const), key }),
    fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 15 }) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.constantFrom(undefined, { qps: 200, burst: 2 }), async (steps, retryRate) => {
      const { queue, time } = make({ baseDelayMs: 2, maxDelayMs: 16, groupOf: key => (key < 'c' ? 'one' : 'two'), retryRate })
      const running = new Set<string>()
      /** Keys that were added and not started since. */
      const pending = new Set<string>()
      const start = async () => {
        const key = (await queue.get()) as string
        ok(!running.has(key), `${key} is processed twice at the same time`)
        ok(pending.delete(key), `${key} is processed without an add`)
        running.add(key)
      }
      for (const step of steps) {
        if (step.do === 'add') {
          queue.add(step.key, step)
          pending.add(step.key)
        } else if (step.do === 'fail') {
          queue.addRateLimited(step.key)
          pending.add(step.key)
        } else if (step.do === 'work' && queue.length > 0) {
          await start()
        } else if (step.do === 'finish' && running.delete(step.key)) {
          queue.done(step.key)
        } else if (step.do === 'advance') {
          await time.advance(step.ms)
        }
        equal(queue.running, running.size)
      }
      for (const key of running) queue.done(key)
      running.clear()
      await time.advance(1_000)
      while (queue.length > 0) {
        await start()
        for (const key of running) queue.done(key)
        running.clear()
      }
      deepEqual([...pending], [], 'every add was followed by processing')
      for (const key of ['a', 'b', 'c', 'd']) queue.forget(key)
      deepEqual([queue.length, queue.running, queue.delayed], [0, 0, 0])
    }),
    { numRuns: 10_000 },
  )
})
