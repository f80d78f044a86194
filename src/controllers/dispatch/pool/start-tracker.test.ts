import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerPool } from '../../../api/index.ts'
import { epochMs, testPool } from '../objects.testing.ts'
import type { StartFailure } from './start-state.ts'
import { StartTracker } from './start-tracker.ts'

const half = () => 0.5

function setUp(spec: Partial<WorkerPool['spec']> = {}) {
  const pool = testPool('pool', spec)
  const registered = new Set<string>()
  const tracker = new StartTracker(new Map([['pool', pool]]), worker => registered.has(worker))
  const state = () => tracker.states.get('pool')!
  const starting = () => (tracker.states.get('pool')?.starting ?? []).map(({ name }) => name)
  return { tracker, pool, registered, state, starting }
}

test('child processes get a random name and count as starting immediately', () => {
  const { tracker, pool, starting } = setUp()
  deepEqual(tracker.start(pool, 1, false, epochMs, half), { workers: ['pool-80000000'], purposes: new Map(), claim: undefined })
  deepEqual(starting(), ['pool-80000000'])
})

test('workers that are objects get the next numbers of their pool, which have to be claimed', () => {
  const { tracker, pool, starting } = setUp({ mode: 'Pod' })
  const numbered = { ...pool, status: { started: 7 } }
  deepEqual(tracker.start(numbered, 2, true, epochMs, half), { workers: ['pool-uid-p-8', 'pool-uid-p-9'], purposes: new Map(), claim: 9 })
  deepEqual(starting(), ['pool-uid-p-8', 'pool-uid-p-9'])
})

test('workers whose claim was rejected count no longer, and it is no failure', () => {
  const { tracker, pool, starting, state } = setUp({ mode: 'Pod' })
  for (const worker of tracker.start(pool, 2, true, epochMs, half).workers) tracker.startFailed('pool', worker, undefined, epochMs)
  deepEqual([starting(), state().failures, [...tracker.processes()], tracker.takeFailures()], [[], 0, [], []])
})

for (const [name, exitCode, failure, expected] of [
  ['exits', 3, undefined, { reason: 'CrashedOnStartup', message: 'worker pool-80000000 exited with code 3 before it registered' }],
  ['is killed', undefined, undefined, { reason: 'CrashedOnStartup', message: 'worker pool-80000000 was killed before it registered' }],
  [
    'has no access',
    5,
    undefined,
    { reason: 'CredentialRejected', message: 'worker pool-80000000 exited with code 5 before it registered' },
  ],
  ['fails for a known reason', 1, { reason: 'Evicted', message: 'the node is full' }, { reason: 'Evicted', message: 'the node is full' }],
] as [string, number | undefined, StartFailure | undefined, StartFailure][]) {
  test(`a worker that ${name} before it registered is a failed start`, () => {
    const { tracker, pool, state } = setUp()
    tracker.start(pool, 1, false, epochMs, half)
    tracker.exited('pool-80000000', exitCode, failure, epochMs)
    deepEqual([state().failures, state().lastFailure], [1, expected])
    deepEqual(tracker.takeFailures(), [{ pool: 'pool', failures: 1, failure: expected }])
    deepEqual(tracker.takeFailures(), [], 'reported once')
  })
}

test('a worker that exits with code 0 after its registration is proven, with another code it is a failed start', () => {
  for (const [exitCode, failures] of [
    [0, 0],
    [1, 1],
  ] as const) {
    const { tracker, pool, state } = setUp()
    tracker.start(pool, 1, false, epochMs, half)
    tracker.registered('pool', 'pool-80000000', epochMs)
    tracker.exited('pool-80000000', exitCode, undefined, epochMs)
    deepEqual([state().failures, state().unproven], [failures, []])
  }
})

test('a worker of another host that deregisters is proven; the exit code of a process of this host decides', () => {
  for (const [isReleased, exitCode, failures] of [
    [true, undefined, 0],
    [false, 0, 0],
    [false, 1, 2],
  ] as const) {
    const { tracker, pool, state } = setUp()
    tracker.start(pool, 1, false, epochMs, half)
    tracker.exited('pool-80000000', 2, undefined, epochMs)
    const [name = ''] = tracker.start(pool, 1, false, epochMs, () => 0.25).workers
    tracker.registered('pool', name, epochMs)
    if (isReleased) tracker.processObserved({ name, pool: 'pool', isReleased }, epochMs)
    tracker.deregistered(name)
    if (!isReleased) tracker.exited(name, exitCode, undefined, epochMs + 2_000)
    deepEqual([state().failures, state().unproven], [failures, []])
  }
})

test('a driver that does not start the worker makes a failed start', () => {
  const { tracker, pool, state } = setUp()
  tracker.start(pool, 1, false, epochMs, half)
  tracker.startFailed('pool', 'pool-80000000', { reason: 'CreateFailed', message: 'spawn ENOENT' }, epochMs)
  deepEqual([state().failures, state().lastFailure?.message, [...tracker.processes()]], [1, 'spawn ENOENT', []])
})

test('workers that have not registered within startTimeout fail', () => {
  const { tracker, pool, state } = setUp({ startTimeout: '5s' })
  tracker.start(pool, 1, false, epochMs, half)
  equal(tracker.nextTimeoutMs(), epochMs + 5_000)
  deepEqual(tracker.expire(epochMs + 4_999), [])
  deepEqual(tracker.expire(epochMs + 5_000), ['pool-80000000'])
  deepEqual([state().lastFailure?.reason, tracker.nextTimeoutMs()], ['RegistrationFailed', Infinity])
})

test('a process that this controller did not start counts as starting since its start, unless it has registered', () => {
  const { tracker, registered, state } = setUp()
  registered.add('registered')
  for (const name of ['registered', 'starting']) tracker.processObserved({ name, pool: 'pool', startedMs: epochMs - 10_000 }, epochMs)
  deepEqual(state().starting, [{ name: 'starting', sinceMs: epochMs - 10_000 }])
  deepEqual(
    [...tracker.processes()].map(({ name }) => name),
    ['registered', 'starting'],
  )
})

test('a process is counted once: a timed-out start that is still observed is not starting again', () => {
  const { tracker, pool, starting } = setUp({ startTimeout: '5s' })
  tracker.start(pool, 1, false, epochMs, half)
  tracker.expire(epochMs + 5_000)
  tracker.processObserved({ name: 'pool-80000000', pool: 'pool' }, epochMs + 6_000)
  deepEqual(starting(), [])
})

test('the present failure of a start is part of its state until it succeeds; a process that is released is no orphan', () => {
  const { tracker, pool, state } = setUp({ mode: 'Pod' })
  tracker.start(pool, 1, true, epochMs, half)
  const process = { name: 'pool-uid-p-1', pool: 'pool' }
  const failure = { reason: 'ImagePullFailed', message: 'not found' } as const
  equal(tracker.processObserved({ ...process, failure }, epochMs), true)
  deepEqual(state().starting[0]?.failure, failure)
  equal(tracker.processObserved({ ...process, failure }, epochMs), false)
  tracker.processObserved(process, epochMs)
  equal(state().starting[0]?.failure, undefined)
  tracker.processObserved({ ...process, isReleased: true }, epochMs)
  deepEqual([...tracker.processes()], [])
})

test('in a long queue numbers are claimed in advance, and used when the claim is written', () => {
  const { tracker, pool } = setUp({ mode: 'Pod' })
  const start = (started: number, waiting: number) => {
    const { workers, claim } = tracker.start({ ...pool, status: { started } }, 2, true, epochMs, half, [], waiting)
    return [workers.map(name => name.split('-').at(-1)), claim]
  }
  deepEqual(start(0, 16), [['1', '2'], 18])
  tracker.claimSettled('pool', true)
  deepEqual(start(18, 14), [['3', '4'], undefined])
  for (let number = 5; number < 18; number += 2) deepEqual(start(18, 9), [[`${number}`, `${number + 1}`], undefined])
  deepEqual(start(18, 9), [['19', '20'], 20])
  // The claim is rejected: another leader has claimed.
  tracker.claimSettled('pool', false)
  deepEqual(start(90, 500), [['91', '92'], 156])
  // Not used before it is written.
  deepEqual(start(90, 500), [['91', '92'], 156])
})

test('numbers that were claimed for a pool are not used for another one of its name', () => {
  const { tracker, pool } = setUp({ mode: 'Pod' })
  tracker.start(pool, 1, true, epochMs, half, [], 20)
  tracker.claimSettled('pool', true)
  const other = { ...pool, metadata: { ...pool.metadata, uid: 'other' } }
  deepEqual(tracker.start(other, 1, true, epochMs, half).workers, ['pool-other-1'])
})
