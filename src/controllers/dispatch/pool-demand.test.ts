import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Run, Worker } from '../../api/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import { epochMs, testPool, testRun, testWorker } from './objects.testing.ts'
import { Scheduler } from './placement/index.ts'
import { initialStartState, type StartState, withFailed, withStarted } from './pool/index.ts'
import { previewQueueOrder, requestOf } from './queue/index.ts'
import { type ScheduleAndSizeInput, scheduleAndSize } from './schedule-and-size.testing.ts'
import { PendingReasons } from './status/index.ts'
import type { WorkerLoad, WorkerLoads } from './worker-load.ts'

type Input = Partial<ScheduleAndSizeInput> & {
  queued?: readonly Run[]
  workers?: readonly Worker[]
  load?: WorkerLoads
  isHomeSilent?: (pool: string) => boolean
}

/** Decides for a queue with `queued` alone. Returns the pending reasons of the Runs that remain queued as `waiting`. */
const decide = ({ queued = [], workers = [], load = new Map(), ...input }: Input) => {
  const scheduler = new Scheduler()
  const { queue } = scheduler
  for (const run of queued) queue.put(requestOf(run))
  for (const worker of workers) scheduler.inventory.set(worker, load.get(worker.metadata.name))
  const { pools = [testPool('default')], starts = new Map(), nowMs = epochMs } = input
  const decision = scheduleAndSize(scheduler, { pools, starts, nowMs, workerTemplates: input.workerTemplates })
  const { workerTemplates, isHomeSilent } = input
  const reasons = new PendingReasons({ queue, workers, pools, starts, workerTemplates, isHomeSilent, nowMs })
  const names = new Set(queued.map(run => run.spec.pool))
  const waiting = [...names].flatMap(pool =>
    previewQueueOrder(queue, pool, queued.length, nowMs).ordered.map(({ entry }) => reasons.of(entry.fifo)),
  )
  const runOf = new Map(queued.map(run => [objectKey(run), run]))
  return { ...decision, assignments: decision.assignments.map(({ key, worker }) => ({ run: runOf.get(key)!, worker })), waiting }
}

const runs = (count: number, options = {}) =>
  Array.from({ length: count }, (_, i) => testRun(`r${i}`, { version: String(i + 1), ...options }))
const startingState = (count: number): StartState =>
  Array.from({ length: count }, (_, i) => `s${i}`).reduce((state, name) => withStarted(state, name, epochMs), initialStartState)

const summarize = (input: Input) => {
  const { assignments, start, drain, pools } = decide(input)
  const numbers = pools.get('default')
  return {
    to: assignments.map(({ run, worker }) => `${run.metadata.name}→${worker}`).join(' '),
    start: start.map(({ pool, count }) => `${count} ${pool}`).join(' '),
    drain: drain.map(({ worker }) => worker).join(' '),
    desired: numbers?.desired,
  }
}

describe('assignments', () => {
  const busy: WorkerLoad = { active: 1, total: 1 }
  for (const [name, input, expected] of [
    ['no worker: nothing is assigned', { queued: runs(1) }, ''],
    ['a free worker gets the oldest Run', { queued: runs(2), workers: [testWorker('w')] }, 'r0→w'],
    ['a busy worker gets no Run', { queued: runs(1), workers: [testWorker('w')], load: new Map([['w', busy]]) }, ''],
    [
      'a one-shot worker that had its Run gets no other',
      { queued: runs(1), workers: [testWorker('w')], load: new Map([['w', { active: 0, total: 1 }]]) },
      '',
    ],
    ['a one-shot worker in phase Busy gets no Run', { queued: runs(1), workers: [testWorker('w', { phase: 'Busy' })] }, ''],
    [
      'a warm worker gets the next Run',
      { queued: runs(1), workers: [testWorker('w', { lifecycle: 'Warm' })], load: new Map([['w', { active: 0, total: 9 }]]) },
      'r0→w',
    ],
    [
      'slots are filled worker by worker',
      { queued: runs(3), workers: [testWorker('a', { slots: 2, lifecycle: 'Warm' }), testWorker('b', { slots: 2, lifecycle: 'Warm' })] },
      'r0→a r1→a r2→b',
    ],
    [
      'the most loaded worker is filled first',
      {
        queued: runs(1),
        workers: [testWorker('a', { slots: 2, lifecycle: 'Warm' }), testWorker('b', { slots: 2, lifecycle: 'Warm', phase: 'Busy' })],
        load: new Map([['b', busy]]),
      },
      'r0→b',
    ],
    ['a worker with spec.drain gets no Run', { queued: runs(1), workers: [testWorker('w', { drain: true })] }, ''],
    ['a worker in phase Draining gets no Run', { queued: runs(1), workers: [testWorker('w', { phase: 'Draining' })] }, ''],
    ['a worker without a status gets no Run', { queued: runs(1), workers: [{ ...testWorker('w'), status: undefined }] }, ''],
    [
      'a worker gets no Run of another pool',
      { queued: runs(1, { pool: 'gpu' }), workers: [testWorker('w')], pools: [testPool('default'), testPool('gpu')] },
      '',
    ],
  ] as [string, Input, string][]) {
    test(name, () => assert.equal(summarize(input).to, expected))
  }
})

describe('pool size: clamp(busy + ceil(queued / slots), min, max)', () => {
  for (const [name, input, expected] of [
    ['no Runs: no workers', {}, { start: '', desired: 0 }],
    ['one worker per Run', { queued: runs(3) }, { start: '3 default', desired: 3 }],
    ['at most max', { queued: runs(9) }, { start: '4 default', desired: 4 }],
    ['at least min', { pools: [testPool('default', { min: 2 })] }, { start: '2 default', desired: 2 }],
    ['max limits min', { pools: [testPool('default', { min: 9, max: 3 })] }, { start: '3 default', desired: 3 }],
    ['max 0 starts nothing', { queued: runs(3), pools: [testPool('default', { max: 0 })] }, { start: '', desired: 0 }],
    ['one worker per group of slots', { queued: runs(5), pools: [testPool('default', { slots: 2 })] }, { start: '3 default', desired: 3 }],
    ['starting workers count', { queued: runs(3), starts: new Map([['default', startingState(2)]]) }, { start: '1 default', desired: 3 }],
    [
      'a slow start does not cause a second one',
      { queued: runs(1), starts: new Map([['default', startingState(1)]]) },
      { start: '', desired: 1 },
    ],
    [
      'a registered worker that is not ready yet counts',
      { queued: runs(1), workers: [{ ...testWorker('w'), status: undefined }] },
      { start: '', desired: 1 },
    ],
    [
      'workers are started in addition to busy ones',
      { queued: runs(1), workers: [testWorker('w', { phase: 'Busy' })], load: new Map([['w', { active: 1, total: 1 }]]) },
      { start: '1 default', desired: 2 },
    ],
    [
      'an exiting worker does not count as capacity, but counts towards max',
      {
        queued: runs(1),
        workers: [testWorker('w')],
        load: new Map([['w', { active: 0, total: 1 }]]),
        pools: [testPool('default', { max: 1 })],
      },
      { start: '', desired: 1 },
    ],
    [
      'an exiting worker is replaced',
      { queued: runs(1), workers: [testWorker('w')], load: new Map([['w', { active: 0, total: 1 }]]) },
      { start: '1 default', desired: 1 },
    ],
    [
      'workers of an External pool are not started',
      { queued: runs(3), pools: [testPool('default', { mode: 'External' })] },
      { start: '', desired: 3 },
    ],
  ] as [string, Input, { start: string; desired: number }][]) {
    test(name, () => {
      const { start, desired } = summarize(input)
      assert.deepEqual({ start, desired }, expected)
    })
  }
})

describe('isolation', () => {
  const sandboxed = (level: 'Sandbox' | 'Pod' = 'Sandbox') => runs(1, { stack: { isolation: { level } } })
  const worker = (name: string, isolation?: ('Process' | 'Sandbox' | 'Pod')[]) =>
    testWorker(name, { lifecycle: 'Warm', slots: 4, status: { engines: { command: '1' }, ...(isolation && { isolation }) } })
  const reasons = (input: Input) => decide(input).waiting.map(({ reason, message }) => `${reason}: ${message}`)

  test('assigns a Run only to a Worker that offers its isolation level', () => {
    const workers = [worker('plain', ['Process']), worker('unreported'), worker('able', ['Process', 'Sandbox'])]
    assert.equal(summarize({ queued: sandboxed(), workers }).to, 'r0→able')
    assert.equal(summarize({ queued: sandboxed(), workers: workers.slice(0, 2) }).to, '')
    assert.equal(
      summarize({ queued: runs(1, { stack: { isolation: { level: 'Process' } } }), workers: workers.slice(0, 1) }).to,
      'r0→plain',
    )
    assert.equal(summarize({ queued: runs(1), workers: workers.slice(1, 2) }).to, 'r0→unreported')
  })
  test('the pending reason names the missing isolation level', () => {
    assert.deepEqual(reasons({ queued: sandboxed(), workers: [worker('plain', ['Process'])] }), [
      'NoMatchingWorker: worker plain of pool default lacks isolation Sandbox (it offers Process)',
    ])
    assert.deepEqual(reasons({ queued: sandboxed('Pod'), workers: [worker('a', ['Process', 'Sandbox']), worker('b')] }), [
      'NoMatchingWorker: none of the 2 workers of pool default has isolation Pod (it offers Process and Sandbox); isolation Pod (it reports no isolation levels)',
    ])
  })
  test('does not start more workers that would lack the level, from some or from none', () => {
    const plain = worker('plain', ['Process'])
    assert.equal(summarize({ queued: sandboxed(), workers: [plain] }).start, '')
    const workerTemplates = new Map([['default', plain]])
    assert.equal(summarize({ queued: sandboxed(), workerTemplates }).start, '')
    assert.deepEqual(reasons({ queued: sandboxed(), workerTemplates }), [
      'NoMatchingWorker: the last worker of pool default lacked isolation Sandbox (it offers Process)',
    ])
    assert.equal(
      summarize({ queued: sandboxed(), workerTemplates: new Map([['default', worker('unreported')]]) }).start,
      '1 default',
      'a template without isolation levels predicts nothing',
    )
    assert.equal(summarize({ queued: sandboxed() }).start, '1 default')
  })
})

describe('failed starts', () => {
  const failed = withFailed(startingState(1), 's0', { reason: 'CreateFailed', message: 'spawn ENOENT' }, epochMs)
  const starts = new Map([['default', failed]])

  test('starts no worker during the backoff, and the pending reason is the failure', () => {
    const decision = decide({ queued: runs(2), starts })
    assert.deepEqual(decision.start, [])
    assert.equal(decision.requeueAfterMs, 1_000)
    assert.deepEqual(
      decision.waiting.map(({ reason, message }) => `${reason}: ${message}`),
      Array(2).fill('WorkerStartFailed: workers of pool default fail to start: spawn ENOENT'),
    )
  })
  test('starts a single worker after the backoff', () => {
    assert.deepEqual(decide({ queued: runs(3), starts, nowMs: epochMs + 1_000 }).start, [{ pool: 'default', count: 1, reason: 'Queue' }])
    const probing = new Map([['default', withStarted(failed, 's1', epochMs + 1_000)]])
    assert.deepEqual(decide({ queued: runs(3), starts: probing, nowMs: epochMs + 1_000 }).start, [])
  })
})

describe('surplus idle one-shot workers', () => {
  test('are drained after one minute', () => {
    assert.equal(decide({ workers: [testWorker('w')], nowMs: epochMs + 59_000 }).requeueAfterMs, 1_000)
    assert.equal(summarize({ workers: [testWorker('w')], nowMs: epochMs + 59_000 }).drain, '')
    assert.equal(summarize({ workers: [testWorker('w')], nowMs: epochMs + 60_000 }).drain, 'w')
  })
  test('remain up to min', () => {
    const pools = [testPool('default', { min: 1 })]
    assert.equal(summarize({ workers: [testWorker('a'), testWorker('b')], pools, nowMs: epochMs + 60_000 }).drain, 'a')
  })
  test('are never drained while busy (invariant 8)', () => {
    const load = new Map([['w', { active: 1, total: 1 }]])
    assert.equal(
      summarize({ workers: [testWorker('w', { phase: 'Busy' })], load, pools: [testPool('default', { max: 0 })], nowMs: epochMs + 60_000 })
        .drain,
      '',
    )
  })
})

describe('pending reasons', () => {
  for (const [name, input, expected] of [
    ['an unknown pool', { queued: runs(1, { pool: 'gpu' }) }, 'PoolNotFound: WorkerPool gpu not found; existing: default'],
    ['no pool at all', { queued: runs(1), pools: [] }, 'PoolNotFound: WorkerPool default not found; there are no WorkerPools'],
    [
      'a pool with max 0',
      { queued: runs(1), pools: [testPool('default', { max: 0 })] },
      'PoolLimit: pool default allows no workers: spec.max is 0',
    ],
    [
      'an External pool without workers',
      { queued: runs(1), pools: [testPool('default', { mode: 'External' })] },
      'NoWorkerJoined: no worker of pool default has joined; create a token for one with: oarlock token create --pool default',
    ],
    [
      'all workers busy or starting',
      { queued: runs(1), workers: [testWorker('w', { phase: 'Busy' })] },
      'NoWorkerAvailable: every worker of pool default is busy or starting',
    ],
    ['no worker', { queued: runs(1) }, 'NoWorkerAvailable: pool default has no worker yet'],
    [
      'no worker, where the controllers of home start them',
      { queued: runs(1), isHomeSilent: () => false },
      'NoWorkerAvailable: pool default has no worker for this partition, and the controllers of home start one; if they do not, see the status of WorkerPool default at home',
    ],
    [
      'no worker, and home does not answer',
      { queued: runs(1), isHomeSilent: pool => pool === 'default' },
      'NoWorkerAvailable: pool default has no worker for this partition, and home, whose controllers start one, does not answer; check the API server of home',
    ],
    [
      'all workers busy, and home does not answer',
      { queued: runs(1), workers: [testWorker('w', { phase: 'Busy' })], isHomeSilent: () => true },
      'NoWorkerAvailable: every worker of pool default that this partition uses is busy, and home, whose controllers start one, does not answer; check the API server of home',
    ],
    [
      'all workers that are allowed are busy, and home does not answer',
      {
        queued: runs(1),
        workers: [testWorker('w', { phase: 'Busy' })],
        pools: [testPool('default', { max: 1 })],
        isHomeSilent: () => true,
      },
      'PoolLimit: the only worker of pool default is busy, and spec.max is 1',
    ],
    [
      'no worker of an External pool, and home does not answer',
      { queued: runs(1), pools: [testPool('default', { mode: 'External' })], isHomeSilent: () => true },
      'NoWorkerJoined: no worker of pool default has joined; create a token for one with: oarlock token create --pool default',
    ],
  ] as [string, Input, string][]) {
    test(name, () =>
      assert.deepEqual(
        decide(input).waiting.map(({ reason, message }) => `${reason}: ${message}`),
        [expected],
      ),
    )
  }
})

test('property: agrees with a naive dispatcher, in which each free slot takes the next Run of its pool', () => {
  const workers = fc.uniqueArray(
    fc.record({
      name: fc.string({ minLength: 1, maxLength: 3 }),
      slots: fc.integer({ min: 1, max: 3 }),
      active: fc.nat(3),
      gpu: fc.boolean(),
    }),
    { selector: ({ name }) => name, maxLength: 8 },
  )
  const queue = fc.array(fc.record({ priority: fc.integer({ min: -2, max: 2 }), atMs: fc.nat(5_000), gpu: fc.boolean() }), {
    maxLength: 20,
  })
  const poolOf = (gpu: boolean) => (gpu ? 'gpu' : 'default')
  fc.assert(
    fc.property(workers, queue, fc.nat(4), fc.nat(6), (members, work, min, max) => {
      const queued: Run[] = work.map(({ gpu, ...options }, i) => testRun(`r${i}`, { ...options, pool: poolOf(gpu), version: String(i) }))
      const pools = [testPool('default', { min, max }), testPool('gpu', { min, max })]
      const decision = decide({
        queued,
        pools,
        workers: members.map(({ name, slots, gpu }) => testWorker(name, { slots, lifecycle: 'Warm', pool: poolOf(gpu) })),
        load: new Map(members.map(({ name, active, slots }) => [name, { active: Math.min(active, slots), total: active }])),
      })
      for (const pool of ['default', 'gpu']) {
        const freeSlots = members
          .filter(({ gpu }) => poolOf(gpu) === pool)
          .reduce((sum, { slots, active }) => sum + Math.max(0, slots - active), 0)
        const expected = queueOrder(queued.filter(run => run.spec.pool === pool)).slice(0, freeSlots)
        const got = decision.assignments.filter(({ run }) => run.spec.pool === pool).map(({ run }) => `ns/${run.metadata.name}`)
        assert.deepEqual(got, expected)
        const started = decision.start.find(one => one.pool === pool)?.count ?? 0
        const memberCount = members.filter(({ gpu }) => poolOf(gpu) === pool).length
        assert.ok(started === 0 || memberCount + started <= max, `${memberCount} + ${started} > ${max}`)
      }
      for (const { name, slots, active } of members) {
        const assigned = decision.assignments.filter(({ worker }) => worker === name).length
        assert.ok(assigned === 0 || active + assigned <= slots, `${name} has ${active} + ${assigned} Runs in ${slots} slots`)
      }
      assert.equal(decision.assignments.length + decision.waiting.length, queued.length)
    }),
    { numRuns: 500 },
  )
})

/** The order of one tenant and class: priority, then age, then resourceVersion. */
function queueOrder(queued: readonly Run[]): string[] {
  const version = ({ metadata }: Run) => Number(metadata.resourceVersion)
  const createdMs = ({ metadata }: Run) => Date.parse(metadata.creationTimestamp)
  return [...queued]
    .sort((a, b) => b.spec.priority - a.spec.priority || createdMs(a) - createdMs(b) || version(a) - version(b))
    .map(objectKey)
}
