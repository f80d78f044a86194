import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Fairness, type FairnessLimits, type Flow } from './index.ts'

/** Sends requests to a Fairness and notes in which order they begin. */
function makeServer(limits: Partial<FairnessLimits> = {}) {
  const fairness = new Fairness(limits)
  const begun: string[] = []
  const send = (name: string, { user = name.replace(/\d+$/, ''), isLease = false, bodyBytes = 0 } = {}) => {
    const entered = fairness.acquire(user, isLease, bodyBytes)
    if (!(entered instanceof Promise)) begun.push(name)
    return Promise.resolve(entered).then(flow => {
      if (entered instanceof Promise) begun.push(name)
      return () => fairness.release(flow, bodyBytes)
    })
  }
  return { fairness, begun, send }
}

const turn = () => new Promise(setImmediate)

test('requests start immediately below the limits', async () => {
  const { fairness, begun, send } = makeServer()
  for (let i = 0; i < 200; i++) (await send(`a${i}`))()
  assert.equal(begun.length, 200)
  assert.deepEqual(fairness.stats(), { inFlight: 0, waiting: 0, rejected: 0, flows: 1 })
})

test('a flood of one user does not delay a request of another in the same tick, and waiting requests start in order', async () => {
  const { fairness, begun, send } = makeServer({ startsPerTick: 10, startsPerTickAlone: 50 })
  const flood = Array.from({ length: 300 }, (_, index) => send(`a${index}`))
  const other = send('b0')
  assert.deepEqual(begun.slice(49), ['a49', 'b0'], 'b begins after what a may begin in a turn')
  assert.equal(fairness.stats().waiting, 250)
  for (const leave of await Promise.all([...flood, other])) leave()
  assert.deepEqual(
    begun.filter(name => name !== 'b0'),
    Array.from({ length: 300 }, (_, index) => `a${index}`),
  )
  assert.equal(fairness.stats().inFlight, 0)
})

test('while two users are active, a request waits for at most startsPerTick requests of the other in a tick', async () => {
  const { begun, send } = makeServer({ startsPerTick: 10, startsPerTickAlone: 50 })
  const flood = Array.from({ length: 500 }, (_, index) => send(`a${index}`))
  const all: Promise<() => void>[] = [...flood]
  let last = begun.length
  for (let i = 0; i < 20; i++) {
    all.push(send(`b${i}`))
    assert.equal(begun.at(-1), `b${i}`, 'starts immediately although others wait')
    assert.ok(begun.length - last <= 1 + (i === 0 ? 50 : 10), `${begun.length - last} requests between two of b`)
    last = begun.length
    await turn()
  }
  for (const leave of await Promise.all(all)) leave()
})

test('at the limit of concurrent requests, users are served round-robin', async () => {
  const { begun, send } = makeServer({ inFlight: 1 })
  const first = await send('a0')
  const rest = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map(name => send(name).then(leave => leave()))
  await turn()
  first()
  await Promise.all(rest)
  assert.deepEqual(begun, ['a0', 'a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
})

test('a user at its limit leaves capacity for others', async () => {
  const { begun, send } = makeServer({ inFlight: 10, inFlightPerFlow: 8 })
  for (let i = 0; i < 30; i++) void send(`a${i}`)
  for (let i = 0; i < 4; i++) await turn()
  assert.equal(begun.length, 8)
  await send('b0')
  assert.equal(begun.at(-1), 'b0')
})

test('large bodies of one user wait for each other, and at least one starts', async () => {
  const { begun, send } = makeServer({ bodyBytesPerFlow: 100 })
  const first = await send('a0', { bodyBytes: 1_000 })
  const second = send('a1', { bodyBytes: 60 })
  const third = send('a2', { bodyBytes: 60 })
  await send('b0', { bodyBytes: 60 })
  assert.deepEqual(begun, ['a0', 'b0'])
  first()
  const leave = await second
  await turn()
  assert.deepEqual(begun, ['a0', 'b0', 'a1'])
  leave()
  await third
})

test('slow requests are spread over ticks, and a quick request waits for at most one of them', async () => {
  const { fairness, begun, send } = makeServer()
  const leave = await send('slow0')
  fairness.recordCost(fairness.acquire('slow', false, 0) as Flow, 50)
  leave()
  await turn()
  begun.length = 0
  const slow = Array.from({ length: 20 }, (_, index) => send(`slow${index}`))
  const long = Array.from({ length: 20 }, (_, index) => send(`long${index}`, { bodyBytes: 100_000 }))
  const most = () => begun.splice(0).filter(name => !name.startsWith('quick')).length
  for (let i = 0; i < 30; i++) {
    const quick = send(`quick${i}`)
    assert.equal(begun.at(-1), `quick${i}`, 'starts immediately')
    assert.ok(most() <= 1)
    ;(await quick)()
    await turn()
  }
  for (const done of await Promise.all([...slow, ...long])) done()
  assert.equal(fairness.stats().waiting, 0)
  await turn()
  // Long ago is forgotten.
  const flow = fairness.acquire('slow', false, 0) as Flow
  for (let i = 0; i < 100; i++) fairness.recordCost(flow, 0.1)
  assert.ok(flow.costMs < 1)
})

test('requests beyond the waiting limit get 429, and Lease requests of the same user are not delayed', async () => {
  const { fairness, begun, send } = makeServer({ inFlightPerFlow: 1, waitingPerFlow: 2 })
  await send('a0')
  void send('a1')
  void send('a2')
  assert.throws(() => fairness.acquire('a', false, 0), { code: 429, details: { retryAfterSeconds: 1 } })
  assert.equal(fairness.stats().rejected, 1)
  await send('a3', { isLease: true })
  assert.equal(begun.at(-1), 'a3')
})

test('watches are limited per user and in total', () => {
  const fairness = new Fairness({ watchesPerUser: 2, watches: 3 })
  const a = fairness.acquire('a', false, 0) as Flow
  const b = fairness.acquire('b', false, 0) as Flow
  const close = fairness.openWatch(a)
  fairness.openWatch(a)
  assert.throws(() => fairness.openWatch(a), { code: 429 })
  fairness.openWatch(b)
  assert.throws(() => fairness.openWatch(b), { code: 429 })
  close()
  fairness.openWatch(b)
})

test('idle users are removed (invariant 10)', () => {
  const fairness = new Fairness()
  for (let i = 0; i < 25_000; i++) fairness.release(fairness.acquire(`user${i}`, false, 0) as Flow, 0)
  assert.ok(fairness.stats().flows <= 10_000)
})

test('random requests: limits hold, requests of a user start in order, and none remains', async () => {
  const limits = { inFlight: 5, inFlightPerFlow: 3, perTurn: 2, perTurnAlone: 4, waitingPerFlow: 1_000 }
  const step = fc.record({ user: fc.constantFrom('a', 'b', 'c'), action: fc.constantFrom('send', 'send', 'send', 'leave', 'turn') })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80 }), async steps => {
      const { fairness, begun, send } = makeServer(limits)
      const running = new Map<string, (() => void)[]>()
      const sent: string[] = []
      let left = 0
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
        if (action === 'turn') await turn()
        else if (action === 'leave') {
          const leave = running.get(user)?.shift()
          if (leave) left++
          leave?.()
        } else {
          const name = `${user}${sent.length}`
          sent.push(name)
          pending.push(
            send(name).then(leave => {
              running.set(user, [...(running.get(user) ?? []), leave])
              check()
            }),
          )
        }
      }
      let ended = 0
      while (ended < sent.length - left) {
        await turn()
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
          begun.filter(name => name.startsWith(user)),
          sent.filter(name => name.startsWith(user)),
        )
      }
      const { inFlight, waiting } = fairness.stats()
      assert.deepEqual([inFlight, waiting], [0, 0])
    }),
    { numRuns: 500 },
  )
})
