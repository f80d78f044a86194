import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Worker } from '../../../api/index.ts'
import { epochMs, testRun, testWorker } from '../objects.testing.ts'
import { requestOf } from '../queue/index.ts'
import type { WorkerLoad } from '../worker-load.ts'
import { Scheduler, starvedAfterMs, starvedEvery } from './scheduler.ts'

const schedulerOf = (...runs: ReturnType<typeof testRun>[]) => {
  const scheduler = new Scheduler()
  for (const run of runs) scheduler.queue.put(requestOf(run))
  return scheduler
}
/** The scheduler has exactly these Workers. */
const setWorkers = ({ inventory }: Scheduler, workers: readonly Worker[], load: ReadonlyMap<string, WorkerLoad>) => {
  for (const { worker } of [...inventory.workers()]) inventory.delete(worker.metadata.name)
  for (const worker of workers) inventory.set(worker, load.get(worker.metadata.name))
}
const assign = (
  scheduler: Scheduler,
  workers: Worker[],
  { load = new Map(), nowMs = epochMs }: { load?: Map<string, WorkerLoad>; nowMs?: number } = {},
) => {
  setWorkers(scheduler, workers, load)
  return scheduler
    .schedule({ nowMs, random: () => 0 })
    .map(({ key, worker }) => `${key}→${worker}`)
    .join(' ')
}
const warm = (name: string, options: Parameters<typeof testWorker>[1] = {}) => testWorker(name, { lifecycle: 'Warm', ...options })

describe('a blocked Run does not delay other Runs', () => {
  test('when no Worker has a required label', () => {
    const scheduler = schedulerOf(
      testRun('gpu', { stack: { placement: { workerLabels: { gpu: 'yes' } } }, priorityClass: 'Interactive' }),
      testRun('plain', { atMs: 9_000 }),
    )
    assert.equal(assign(scheduler, [warm('w')]), 'ns/plain→w')
    assert.equal(assign(scheduler, [warm('v', { labels: { gpu: 'yes' } })]), 'ns/gpu→v')
  })
  test('when its pool is at its limit', () => {
    const scheduler = schedulerOf(
      testRun('a', { pool: 'small', version: '1' }),
      testRun('b', { pool: 'small', version: '2' }),
      testRun('c', { atMs: 5_000 }),
    )
    scheduler.queue.setPoolLimits(new Map([['small', 1]]))
    assert.equal(assign(scheduler, [warm('s', { pool: 'small', slots: 9 }), warm('d')]), 'ns/a→s ns/c→d')
    assert.equal(scheduler.queue.poolLimitReached('small'), 'PoolLimit')
  })
  test('when the limit of all pools is reached, no Run starts', () => {
    const scheduler = new Scheduler({ maxRunning: 2 })
    for (const i of [1, 2, 3]) scheduler.queue.put(requestOf(testRun(`r${i}`, { version: `${i}` })))
    assert.equal(assign(scheduler, [warm('w', { slots: 9 })]), 'ns/r1→w ns/r2→w')
    assert.equal(scheduler.queue.poolLimitReached('default'), 'GlobalLimit')
  })
})

describe('cpu and memory', () => {
  const big = (name: string, memory: string, atMs = 0, version = '1') => testRun(name, { stack: { resources: { memory } }, atMs, version })
  const host = (name: string) => warm(name, { slots: 8, status: { capacity: { cpu: '8', memory: '8Gi' } } })

  test('a Worker gets no more Runs than its capacity allows', () => {
    const scheduler = schedulerOf(big('a', '3Gi', 0, '1'), big('b', '3Gi', 0, '2'), big('c', '3Gi', 0, '3'), big('d', '2Gi', 0, '4'))
    assert.equal(assign(scheduler, [host('w')]), 'ns/a→w ns/b→w ns/d→w')
    assert.equal(scheduler.queue.size, 1)
  })
  test('the load of active Runs counts', () => {
    const load = new Map([['w', { active: 1, total: 1, memoryBytes: 6 * 2 ** 30 }]])
    assert.equal(assign(schedulerOf(big('a', '3Gi')), [host('w')], { load }), '')
    assert.equal(assign(schedulerOf(big('a', '2Gi')), [host('w')], { load }), 'ns/a→w')
  })

  test('reserves a Worker for a starved large Run until it has enough capacity', () => {
    const scheduler = schedulerOf(big('huge', '8Gi'))
    const load = new Map<string, WorkerLoad>([
      ['v', { active: 2, total: 2, memoryBytes: 2 * 2 ** 30 }],
      ['w', { active: 1, total: 1, memoryBytes: 2 ** 30 }],
    ])
    const workers = [host('v'), host('w')]
    const small = (name: string, nowMs: number) => {
      scheduler.queue.put(requestOf(big(name, '1Gi', nowMs - epochMs)))
      return assign(scheduler, workers, { load, nowMs })
    }
    assert.equal(small('s1', epochMs + starvedAfterMs - 1), 'ns/s1→v')
    assert.equal(small('s2', epochMs + starvedAfterMs), 'ns/s2→v')
    assert.deepEqual([...scheduler.reservations], [['default', { key: 'ns/huge', worker: 'w' }]])
    assert.equal(small('s3', epochMs + starvedAfterMs + 1), 'ns/s3→v')
    load.delete('w')
    assert.equal(small('s4', epochMs + starvedAfterMs + 2), 'ns/huge→w ns/s4→v')
    assert.equal(scheduler.reservations.size, 0)
  })
  test('reserves no Worker for a deleted Run, or for one that fits no Worker', () => {
    const scheduler = schedulerOf(big('huge', '8Gi'), big('absurd', '9Gi', 0, '0'))
    const load = new Map([['w', { active: 1, total: 1, memoryBytes: 2 ** 30 }]])
    const nowMs = epochMs + starvedAfterMs
    assign(scheduler, [host('w')], { load, nowMs })
    assert.deepEqual([...scheduler.reservations], [['default', { key: 'ns/huge', worker: 'w' }]])
    scheduler.queue.remove('ns/huge')
    assign(scheduler, [host('w')], { load, nowMs })
    assert.equal(scheduler.reservations.size, 0)
  })
})

test(`property: a starved Run starts within ${starvedEvery} · (older starved Runs + 1) assignments, whatever other Runs arrive`, () => {
  const arrivals = fc.array(
    fc.record({
      namespace: fc.constantFrom('a', 'b', 'c', 'd'),
      priorityClass: fc.constantFrom('Interactive', 'Change', 'Drift'),
      priority: fc.integer({ min: -2, max: 1_000 }),
      takesMs: fc.nat(300_000),
    }),
    { minLength: 1, maxLength: 12 },
  )
  fc.assert(
    fc.property(arrivals, fc.nat(30), fc.nat(7), (others, older, count) => {
      const scheduler = new Scheduler()
      const { queue } = scheduler
      // Earlier assignments.
      for (let i = 0; i < count; i++) {
        queue.put(requestOf(testRun(`before${i}`)))
        setWorkers(scheduler, [warm('w')], new Map())
        assert.equal(scheduler.schedule({ nowMs: epochMs, random: () => 0 }).length, 1)
        queue.end(`ns/before${i}`, epochMs)
      }
      // Last in every order: lowest class, lowest priority, a tenant with high usage.
      queue.chargePastRun('starved', 10 * 3_600_000, epochMs)
      const starved = { namespace: 'starved', priorityClass: 'Drift', priority: -1_000 } as const
      for (let i = 0; i < older; i++) queue.put(requestOf(testRun(`older${i}`, { ...starved, atMs: i, version: String(i) })))
      queue.put(requestOf(testRun('last', { ...starved, atMs: 1_000, version: '99' })))
      const bound = starvedEvery * (older + 1)
      let nowMs = epochMs + 1_000 + starvedAfterMs
      let number = 0
      for (let placed = 1; placed <= bound; placed++) {
        // New Runs keep arriving.
        while (queue.size < older + 20) {
          const { takesMs: _, ...options } = others[number % others.length]!
          queue.put(requestOf(testRun(`arrival${number++}`, { ...options, atMs: nowMs - epochMs, version: String(1_000 + number) })))
        }
        setWorkers(scheduler, [warm('w')], new Map())
        const [assigned] = scheduler.schedule({ nowMs, random: () => 0 })
        assert.ok(assigned)
        if (assigned.key === 'starved/last') return
        nowMs += others[placed % others.length]!.takesMs
        queue.end(assigned.key, nowMs)
      }
      assert.fail(`it did not start within ${bound} assignments`)
    }),
    { numRuns: 100 },
  )
})
