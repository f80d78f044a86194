import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Fairness, type FairnessLimits, type Flow } from './index.ts'

/** Sends requests to a Fairness and records the order in which they start. */
function makeServer(limits: Partial<FairnessLimits> = {}) {
  const fairness = new Fairness(limits)
  const started: string[] = []
  const send = (name: string, { user = name.replace(/\d+$/, ''), isLease = false, bodyBytes = 0 } = {}) => {
    const entered = fairness.acquire(user, isLease ? 'leases' : 'user', bodyBytes)
    if (!(entered instanceof Promise)) started.push(name)
    return Promise.resolve(entered).then(flow => {
      if (entered instanceof Promise) started.push(name)
      return () => fairness.release(flow, bodyBytes)
    })
  }
  return { fairness, started, send }
}

const nextTick = () => new Promise(setImmediate)

test('requests start immediately below the limits', async () => {
  const { fairness, started, send } = makeServer()
  for (let i = 0; i < 200; i++) (await send(`a${i}`))()
  assert.equal(started.length, 200)
  assert.deepEqual(fairness.stats(), { inFlight: 0, waiting: 0, rejected: 0, flows: 1 })
})

test('a flood of one user does not delay a request of another in the same tick, and waiting requests start in order', async () => {
  const { fairness, started, send } = makeServer({ startsPerTick: 10, startsPerTickAlone: 50 })
  const flood = Array.from({ length: 300 }, (_, index) => send(`a${index}`))
  const other = send('b0')
  assert.deepEqual(started.slice(49), ['a49', 'b0'], 'b starts after the first 50 requests of a')
  assert.equal(fairness.stats().waiting, 250)
  for (const release of await Promise.all([...flood, other])) release()
  assert.deepEqual(
    started.filter(name => name !== 'b0'),
    Array.from({ length: 300 }, (_, index) => `a${index}`),
  )
  assert.equal(fairness.stats().inFlight, 0)
})

test('while two users are active, a request waits for at most startsPerTick requests of the other in a tick', async () => {
  const { started, send } = makeServer({ startsPerTick: 10, startsPerTickAlone: 50 })
  const flood = Array.from({ length: 400 }, (_, index) => send(`a${index}`))
  const all: Promise<() => void>[] = [...flood]
  let last = started.length
  for (let i = 0; i < 20; i++) {
    all.push(send(`b${i}`))
    assert.equal(started.at(-1), `b${i}`, 'starts immediately, although others wait')
    assert.ok(started.length - last <= 1 + (i === 0 ? 50 : 10), `${started.length - last} requests between two of b`)
    last = started.length
    await nextTick()
  }
  for (const release of await Promise.all(all)) release()
})

test('at the limit of concurrent requests, users are served round-robin', async () => {
  const { started, send } = makeServer({ inFlight: 1 })
  const first = await send('a0')
  const rest = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map(name => send(name).then(release => release()))
  await nextTick()
  first()
  await Promise.all(rest)
  assert.deepEqual(started, ['a0', 'a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
})

test('a user at its limit leaves capacity for others', async () => {
  const { started, send } = makeServer({ inFlight: 100, inFlightPerFlow: 8 })
  for (let i = 0; i < 30; i++) void send(`a${i}`)
  for (let i = 0; i < 4; i++) await nextTick()
  assert.equal(started.length, 8)
  await send('b0')
  assert.equal(started.at(-1), 'b0')
})

test('users who never finish their requests leave capacity for others', async () => {
  const { fairness, started, send } = makeServer()
  const running: number[] = []
  for (const user of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']) {
    const before = started.length
    for (let i = 0; i < 1_000; i++) void send(`${user}${i}`)
    let settled = -1
    while (settled !== started.length) {
      settled = started.length
      await nextTick()
    }
    running.push(started.length - before)
  }
  assert.deepEqual(running, [500, 375, 282, 211, 158, 119, 89, 67, 50, 38])
  assert.equal(fairness.stats().inFlight, 1_889)
  await send('other0')
  assert.equal(started.at(-1), 'other0')
})

test('large bodies of one user wait for each other, and at least one starts', async () => {
  const { started, send } = makeServer({ bodyBytesPerFlow: 100 })
  const first = await send('a0', { bodyBytes: 1_000 })
  const second = send('a1', { bodyBytes: 60 })
  const third = send('a2', { bodyBytes: 60 })
  await send('b0', { bodyBytes: 60 })
  assert.deepEqual(started, ['a0', 'b0'])
  first()
  const release = await second
  await nextTick()
  assert.deepEqual(started, ['a0', 'b0', 'a1'])
  release()
  await third
})

test('slow requests are spread over ticks, and a quick request waits for at most one of them', async () => {
  const { fairness, started, send } = makeServer()
  const release = await send('slow0')
  fairness.recordCost(fairness.acquire('slow', 'user', 0) as Flow, 50)
  release()
  await nextTick()
  started.length = 0
  const slow = Array.from({ length: 20 }, (_, index) => send(`slow${index}`))
  const long = Array.from({ length: 20 }, (_, index) => send(`long${index}`, { bodyBytes: 100_000 }))
  const most = () => started.splice(0).filter(name => !name.startsWith('quick')).length
  for (let i = 0; i < 30; i++) {
    const quick = send(`quick${i}`)
    assert.equal(started.at(-1), `quick${i}`, 'starts immediately')
    assert.ok(most() <= 1)
    ;(await quick)()
    await nextTick()
  }
  for (const done of await Promise.all([...slow, ...long])) done()
  assert.equal(fairness.stats().waiting, 0)
  await nextTick()
  // Old measurements expire.
  const flow = fairness.acquire('slow', 'user', 0) as Flow
  for (let i = 0; i < 100; i++) fairness.recordCost(flow, 0.1)
  assert.ok(flow.costMs < 1)
})

test('requests beyond the waiting limit get 429, and Lease requests of the same user are not delayed', async () => {
  const { fairness, started, send } = makeServer({ inFlightPerFlow: 1, waitingPerFlow: 2 })
  await send('a0')
  void send('a1')
  void send('a2')
  assert.throws(() => fairness.acquire('a', 'user', 0), { code: 429, details: { retryAfterSeconds: 1 } })
  assert.equal(fairness.stats().rejected, 1)
  await send('a3', { isLease: true })
  assert.equal(started.at(-1), 'a3')
})

test('watches are limited per user and in total', () => {
  const fairness = new Fairness({ watchesPerUser: 2, watches: 3 })
  const a = fairness.acquire('a', 'user', 0) as Flow
  const b = fairness.acquire('b', 'user', 0) as Flow
  const close = fairness.openWatch(a)
  fairness.openWatch(a)
  assert.throws(() => fairness.openWatch(a), { code: 429 })
  fairness.openWatch(b)
  assert.throws(() => fairness.openWatch(b), { code: 429 })
  close()
  fairness.openWatch(b)
})

test('requests of a user wait while it has many responses that it does not read', async () => {
  const fairness = new Fairness({ unreadPerFlow: 2 })
  const reads = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  for (const { promise } of reads) {
    const flow = fairness.acquire('a', 'user', 0) as Flow
    void fairness.countUnread(flow, promise)
    fairness.release(flow, 0)
  }
  const next = fairness.acquire('a', 'user', 0)
  assert.ok(next instanceof Promise)
  assert.ok(!(fairness.acquire('b', 'user', 0) instanceof Promise))
  reads[0]!.resolve()
  assert.equal((await next).client, 'a')
})

test('idle users are removed (invariant 10)', () => {
  const fairness = new Fairness()
  for (let i = 0; i < 25_000; i++) fairness.release(fairness.acquire(`user${i}`, 'user', 0) as Flow, 0)
  assert.ok(fairness.stats().flows <= 10_000)
})

test('random requests: limits hold, requests of a user start in order, and none remains', async () => {
  const limits = { inFlight: 5, inFlightPerFlow: 3, startsPerTick: 2, startsPerTickAlone: 4, waitingPerFlow: 1_000 }
  const step = fc.record({ user: fc.constantFrom('a', 'b', 'c'), action: fc.constantFrom('send', 'send', 'send', 'release', 'tick') })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80 }), async steps => {
      const { fairness, started, send } = makeServer(limits)
      const running = new Map<string, (() => void)[]>()
      const sent: string[] = []
      let released = 0
      const check = () => {
        let all = 0
        for (const ofUser of running.values()) {
          assert.ok(ofUser.length <= limits.inFlightPerFlow)
          all += ofUser.length
        }
        assert.ok(all <= limits.inFlight)
      }
      const pending: Promise<void>[] = []
      for (const { user, action } of steps) {
        if (action === 'tick') await nextTick()
        else if (action === 'release') {
          const release = running.get(user)?.shift()
          if (release) released++
          release?.()
        } else {
          const name = `${user}${sent.length}`
          sent.push(name)
          pending.push(
            send(name).then(release => {
              running.set(user, [...(running.get(user) ?? []), release])
              check()
            }),
          )
        }
      }
      let ended = 0
      while (ended < sent.length - released) {
        await nextTick()
        for (const ofUser of running.values()) {
          while (ofUser.length > 0) {
            ofUser.shift()!()
            ended++
          }
        }
      }
      await Promise.all(pending)
      for (const user of ['a', 'b', 'c']) {
        assert.deepEqual(
          started.filter(name => name.startsWith(user)),
          sent.filter(name => name.startsWith(user)),
        )
      }
      const { inFlight, waiting } = fairness.stats()
      assert.deepEqual([inFlight, waiting], [0, 0])
    }),
    { numRuns: 500 },
  )
})

test('requests that limit their own concurrency count at their start only, and networks are not users of the same name', async () => {
  const fairness = new Fairness({ inFlightPerFlow: 1, waitingPerFlow: 1 })
  const open = Promise.withResolvers<void>()
  const all = [1, 2].map(() => fairness.start('a', 'network', () => open.promise))
  await new Promise(setImmediate)
  await fairness.start('a', 'user', async () => {})
  assert.equal(fairness.stats().inFlight, 0)
  open.resolve()
  await Promise.all(all)
})

test('many requests of one network start over several ticks, and one of another starts in the first', async () => {
  const fairness = new Fairness({ startsPerTick: 2, startsPerTickAlone: 2 })
  const started: string[] = []
  const start = (network: string) => fairness.start(network, 'network', async () => void started.push(network))
  const all = ['a', 'a', 'a', 'a', 'b'].map(start)
  assert.deepEqual(started, ['a', 'a', 'b'])
  await Promise.all(all)
  assert.equal(started.length, 5)
})
