import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { epochMs, testRun, testTenant } from '../objects.testing.ts'
import { previewQueueOrder } from './preview.ts'
import { expectedRunMs, RunQueue } from './run-queue.ts'
import { type RunRequest, requestOf } from './run-request.ts'
import { TenantIndex } from './tenants.ts'

const halfLifeMs = 900_000

/** Starts the next Run of the only equivalence class. */
function startNext(queue: RunQueue, atMs: number): string | undefined {
  const [equivalenceClass] = queue.equivalenceClasses()
  const entry = equivalenceClass && queue.next(equivalenceClass)
  if (!entry) return undefined
  const { key, namespace, requirements, concurrency } = entry.request
  queue.start({ key, namespace, pool: requirements.pool, concurrencyKey: concurrency?.key, sinceMs: atMs })
  return key
}

const startAll = (queue: RunQueue, atMs = epochMs) => {
  const started: string[] = []
  for (let key = startNext(queue, atMs); key !== undefined; key = startNext(queue, atMs)) started.push(key)
  return started
}

const queueOf = (...runs: ReturnType<typeof testRun>[]) => {
  const queue = new RunQueue()
  for (const run of runs) queue.put(requestOf(run))
  return queue
}

describe('order', () => {
  test('the priority class takes precedence over priority and age', () => {
    const queue = queueOf(
      testRun('drift', { priorityClass: 'Drift', priority: 1_000 }),
      testRun('change', { atMs: 5_000 }),
      testRun('requested', { priorityClass: 'Interactive', priority: -1_000, atMs: 9_000 }),
    )
    assert.deepEqual(startAll(queue), ['ns/requested', 'ns/change', 'ns/drift'])
  })

  test('priority orders the Runs of one tenant only', () => {
    const queue = queueOf(
      testRun('low', { namespace: 'a', priority: -5 }),
      testRun('high', { namespace: 'a', priority: 1_000 }),
      testRun('high2', { namespace: 'a', priority: 1_000, atMs: 1_000 }),
      testRun('plain', { namespace: 'b', atMs: 2_000 }),
    )
    assert.deepEqual(startAll(queue), ['a/high', 'b/plain', 'a/high2', 'a/low'])
  })

  test('tenants alternate by recent usage', () => {
    const runs = ['a', 'b'].flatMap(namespace =>
      [0, 1, 2].map(i => testRun(`${i}`, { namespace, atMs: i * 1_000, version: namespace === 'a' ? '1' : '2' })),
    )
    assert.deepEqual(startAll(queueOf(...runs)), ['a/0', 'b/0', 'a/1', 'b/1', 'a/2', 'b/2'])
  })

  test('a tenant with twice the weight starts twice the Runs', () => {
    const queue = new RunQueue()
    queue.setTenants(new TenantIndex([testTenant('a', { weight: 2 })]))
    for (const namespace of ['a', 'b']) {
      for (let i = 0; i < 6; i++) queue.put(requestOf(testRun(`${i}`, { namespace, version: String(i) })))
    }
    const first = startAll(queue).slice(0, 9)
    assert.equal(first.filter(key => key.startsWith('a/')).length, 6)
    assert.equal(first.filter(key => key.startsWith('b/')).length, 3)
  })

  test('a Run that supersedes another keeps its age', () => {
    const young = testRun('young', { atMs: 9_000 })
    const queue = queueOf(testRun('old', { atMs: 5_000 }), { ...young, spec: { ...young.spec, queuedSince: '2026-06-01T10:00:00Z' } })
    assert.deepEqual(startAll(queue), ['ns/young', 'ns/old'])
  })

  test('a queued Run whose class changes is moved', () => {
    const run = testRun('b', { atMs: 1_000 })
    const queue = queueOf(testRun('a'), run)
    queue.put(requestOf({ ...run, spec: { ...run.spec, priorityClass: 'Interactive' } }))
    assert.deepEqual(startAll(queue), ['ns/b', 'ns/a'])
  })
})

describe('usage', () => {
  const usage = (queue: RunQueue, name: string, atMs: number) => {
    const account = [...queue.accounts()].find(one => one.name === name)
    return account ? Math.round(queue.usageMs(account, atMs)) : 0
  }
  const queueWithActiveRun = () => {
    const queue = queueOf(testRun('r'))
    startNext(queue, epochMs)
    return queue
  }

  test('a Run is charged an estimate at its start, and its service time at its end', () => {
    const queue = queueWithActiveRun()
    assert.equal(usage(queue, 'ns', epochMs), expectedRunMs)
    queue.end('ns/r', epochMs + 5_000)
    assert.equal(usage(queue, 'ns', epochMs + 5_000), 5_000)
    queue.end('ns/r', epochMs + 9_000)
    assert.equal(usage(queue, 'ns', epochMs + 5_000), 5_000, 'a second end is not charged')
  })

  test('a Run that exceeds its estimate is charged its service time so far', () => {
    const queue = queueWithActiveRun()
    queue.tick(epochMs + 30_000)
    assert.equal(usage(queue, 'ns', epochMs), expectedRunMs)
    queue.tick(epochMs + 600_000)
    assert.equal(usage(queue, 'ns', epochMs + 600_000), 600_000)
  })

  test('a Run whose assignment failed is not charged', () => {
    const queue = queueWithActiveRun()
    queue.undoStart('ns/r')
    assert.equal(usage(queue, 'ns', epochMs), 0)
    assert.equal(queue.running, 0)
  })

  test('accounts without Runs and usage are removed (invariant 10)', () => {
    const queue = queueWithActiveRun()
    queue.end('ns/r', epochMs + 60_000)
    queue.tick(epochMs + 5 * halfLifeMs)
    assert.equal([...queue.accounts()].length, 1)
    queue.tick(epochMs + 7 * halfLifeMs)
    assert.equal([...queue.accounts()].length, 0)
  })

  test('usage is exact after more than a year', () => {
    const queue = queueOf()
    for (let day = 0; day < 400; day++) {
      const atMs = epochMs + day * 86_400_000
      queue.put(requestOf(testRun(`${day}`, { atMs: day * 86_400_000 })))
      assert.equal(startNext(queue, atMs), `ns/${day}`)
      queue.end(`ns/${day}`, atMs + 60_000)
      queue.tick(atMs + 60_000)
      assert.equal(usage(queue, 'ns', atMs + 60_000), 60_000)
    }
  })
})

describe('a limit blocks only its own Runs', () => {
  test('the limit of a tenant', () => {
    const queue = new RunQueue()
    queue.setTenants(new TenantIndex([testTenant('a', { limits: { maxRunning: 1 } })]))
    for (const name of ['1', '2']) queue.put(requestOf(testRun(name, { namespace: 'a', version: name })))
    queue.put(requestOf(testRun('1', { namespace: 'b', priorityClass: 'Drift' })))
    assert.deepEqual(startAll(queue), ['a/1', 'b/1'])
    queue.end('a/1', epochMs)
    assert.deepEqual(startAll(queue), ['a/2'])
  })

  test('the limit of a concurrencyKey, within its tenant', () => {
    const stack = { concurrencyKey: 'aws' }
    const queue = queueOf(
      testRun('1', { stack, version: '1' }),
      testRun('2', { stack, version: '2' }),
      testRun('3', { version: '3' }),
      testRun('4', { stack, namespace: 'other', version: '4' }),
    )
    assert.deepEqual(startAll(queue).sort(), ['ns/1', 'ns/3', 'other/4'])
    queue.end('ns/1', epochMs)
    assert.deepEqual(startAll(queue), ['ns/2'])
  })

  test('each Run obeys its own limit when Runs with one key have different limits', () => {
    const of = (limit: number) => ({ concurrencyKey: 'k', concurrencyLimit: limit })
    const queue = queueOf(
      testRun('1', { stack: of(2), version: '1' }),
      testRun('2', { stack: of(1), version: '2' }),
      testRun('3', { stack: of(2), version: '3' }),
    )
    assert.deepEqual(startAll(queue), ['ns/1', 'ns/3'])
    queue.end('ns/1', epochMs)
    assert.deepEqual(startAll(queue), [])
    queue.end('ns/3', epochMs)
    assert.deepEqual(startAll(queue), ['ns/2'])
  })

  test('the Runs of a namespace move with it to another Tenant', () => {
    const queue = new RunQueue()
    for (const name of ['1', '2']) queue.put(requestOf(testRun(name, { namespace: 'a', version: name })))
    startNext(queue, epochMs)
    queue.setTenants(new TenantIndex([testTenant('t', { namespaces: ['a'], limits: { maxRunning: 1 } })]))
    assert.equal(startNext(queue, epochMs), undefined)
    queue.end('a/1', epochMs)
    assert.equal(startNext(queue, epochMs), 'a/2')
  })
})

// ---- comparison with a naive queue

type Naive = { request: RunRequest; atMs?: number }
const tenants = new TenantIndex([
  testTenant('a', { weight: 3 }),
  testTenant('b', { limits: { maxRunning: 2 } }),
  testTenant('c', { namespaces: ['c', 'd'] }),
])

/** Sorts everything each time, with usage by its definition. Returns all Runs that may be next. */
function naiveNext(queued: RunRequest[], running: Naive[], past: { tenant: string; costMs: number; atMs: number }[], nowMs: number) {
  const decayed = (costMs: number, atMs: number) => costMs * 2 ** (-(nowMs - atMs) / halfLifeMs)
  const usage = (tenant: string) =>
    past.filter(one => one.tenant === tenant).reduce((sum, { costMs, atMs }) => sum + decayed(costMs, atMs), 0) +
    running
      .filter(({ request }) => tenants.tenantOf(request.namespace) === tenant)
      .reduce((sum, { atMs = 0 }) => sum + decayed(expectedRunMs, atMs), 0)
  const isOpen = ({ namespace, concurrency }: RunRequest) => {
    const tenant = tenants.tenantOf(namespace)
    const own = running.filter(({ request }) => tenants.tenantOf(request.namespace) === tenant)
    if (own.length >= tenants.settingsOf(tenant).maxRunning) return false
    return !concurrency || own.filter(({ request }) => request.concurrency?.key === concurrency.key).length < concurrency.limit
  }
  const score = (request: RunRequest) => {
    const tenant = tenants.tenantOf(request.namespace)
    return [request.rank, usage(tenant) / tenants.settingsOf(tenant).weight]
  }
  const open = queued.filter(isOpen)
  const least = open.map(score).sort((a, b) => a[0]! - b[0]! || a[1]! - b[1]!)[0]
  // Usage that differs only by rounding is a tie, so that either tenant may be next.
  return open.filter(request => {
    const [rank, used] = score(request)
    return rank === least![0] && Math.abs(used! - least![1]!) <= 1e-6 * Math.max(1, used!)
  })
}

test('property: agrees with a naive queue after any sequence of transitions', () => {
  const request = fc.record({
    namespace: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    priorityClass: fc.constantFrom('Interactive', 'Change', 'Drift'),
    priority: fc.constantFrom(0, 0, 1),
    atMs: fc.nat(50).map(seconds => seconds * 1_000),
    key: fc.option(fc.constantFrom('k', 'l'), { nil: undefined }),
    limit: fc.integer({ min: 1, max: 2 }),
  })
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ do: fc.constant('put' as const), request }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('start' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat(20), afterMs: fc.nat(2_000_000) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), which: fc.nat(20) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('undoStart' as const), which: fc.nat(20) }) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const queue = new RunQueue({ halfLifeMs })
      queue.setTenants(tenants)
      let nowMs = epochMs
      let number = 0
      let queued: RunRequest[] = []
      let running: Naive[] = []
      const past: { tenant: string; costMs: number; atMs: number }[] = []
      for (const now of steps) {
        if (now.do === 'put') {
          const { namespace, priorityClass, priority, atMs, key, limit } = now.request
          const stack = key === undefined ? {} : { concurrencyKey: key, concurrencyLimit: limit }
          const run = testRun(`r${++number}`, { namespace, priorityClass, priority, atMs, version: String(number), stack })
          queue.put(requestOf(run))
          queued.push(requestOf(run))
        } else if (now.do === 'start') {
          const expected = naiveNext(queued, running, past, nowMs)
          const key = startNext(queue, nowMs)
          if (key === undefined) {
            assert.equal(expected.length, 0)
            continue
          }
          const chosen = expected.find(one => one.key === key)
          assert.ok(chosen, `${key} is not one of ${expected.map(one => one.key)}`)
          // No other eligible Run of its tenant and class has a higher priority, or the same priority and a higher age.
          const better = expected.filter(one => one.namespace === chosen.namespace && one.priority > chosen.priority)
          assert.deepEqual(better, [])
          const older = expected.filter(
            one => one.namespace === chosen.namespace && one.priority === chosen.priority && one.sinceMs < chosen.sinceMs,
          )
          assert.deepEqual(older, [])
          queued = queued.filter(one => one !== chosen)
          running.push({ request: chosen, atMs: nowMs })
        } else if (now.do === 'remove') {
          const removed = queued[now.which % Math.max(1, queued.length)]
          if (removed) queue.remove(removed.key)
          queued = queued.filter(one => one !== removed)
        } else {
          const one = running[now.which % Math.max(1, running.length)]
          if (!one) continue
          running = running.filter(other => other !== one)
          if (now.do === 'undoStart') {
            queue.undoStart(one.request.key)
            queue.put(one.request)
            queued.push(one.request)
            continue
          }
          nowMs += now.afterMs
          queue.end(one.request.key, nowMs)
          past.push({ tenant: tenants.tenantOf(one.request.namespace), costMs: nowMs - one.atMs!, atMs: nowMs })
        }
        assert.equal(queue.size, queued.length)
        assert.equal(queue.running, running.length)
      }
    }),
    { numRuns: 300 },
  )
})

test('property: the preview is the order in which Runs start if nothing else changes', () => {
  const request = fc.record({
    namespace: fc.constantFrom('a', 'c', 'd', 'e'),
    priorityClass: fc.constantFrom('Interactive', 'Change', 'Drift'),
    priority: fc.constantFrom(0, 0, 1),
    atMs: fc.nat(50).map(seconds => seconds * 1_000),
  })
  fc.assert(
    fc.property(fc.array(request, { maxLength: 40 }), list => {
      const queue = new RunQueue({ halfLifeMs })
      queue.setTenants(tenants)
      for (const [i, options] of list.entries()) queue.put(requestOf(testRun(`r${i}`, { ...options, version: String(i) })))
      const { ordered } = previewQueueOrder(queue, 'default', 100, epochMs)
      assert.deepEqual(
        ordered.map(({ entry }) => entry.request.key),
        startAll(queue),
      )
      assert.deepEqual(
        ordered.map(({ position }) => position),
        ordered.map((_, i) => i + 1),
      )
    }),
    { numRuns: 200 },
  )
})
