import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { FailureDetector } from './failure-detector.ts'

const workerOf = (name: string, uid = `uid-${name}`) => ({ kind: 'Worker', namespace: '', name, uid, resourceVersion: '1' }) as const
const leaseOf = (worker: string, version: string, isOfWorker = true) => ({ worker, uid: 'l', resourceVersion: version, isOfWorker })

/** A step at a time: what exists then. A worker that is missing was deleted. */
type Objects = { worker?: boolean; run?: boolean; lease?: string; isOfWorker?: boolean }

/** Reports the objects of worker `w` at the given times. Returns when its loss had to be confirmed. */
function expiriesOf(...steps: [atMs: number, Objects][]): number[] {
  const detector = new FailureDetector(10_000)
  return steps.flatMap(([atMs, { worker, run, lease, isOfWorker }]) => {
    if (lease === undefined) detector.leaseDeleted('w', atMs)
    else detector.leaseChanged(leaseOf('w', lease, isOfWorker), atMs)
    if (worker) detector.workerChanged(workerOf('w'), atMs)
    else detector.workerDeleted('w', atMs)
    detector.runsChanged('w', run === true, atMs)
    return detector.decide(atMs).expired.map(() => atMs)
  })
}

test('invariant 2: a worker whose Lease has a longer duration expires later, between the shortest duration and the maximum, and others do not', () => {
  const detector = new FailureDetector(10_000)
  const durations = { short: 3_000, none: undefined, long: 60_000, endless: 1e9 }
  // The one that is silent for the longest time has the longest Lease.
  for (const [index, name] of (['endless', 'long', 'none', 'short'] as const).entries()) {
    detector.leaseChanged({ ...leaseOf(name, '1'), durationMs: durations[name] }, index)
    detector.workerChanged(workerOf(name), index)
  }
  const expired: string[] = []
  let nowMs = 10
  while (Number.isFinite(nowMs) && nowMs < 1e6) {
    const { expired: now, requeueAfterMs } = detector.decide(nowMs)
    expired.push(...now.map(({ worker }) => `${worker} ${nowMs}`))
    nowMs += requeueAfterMs
  }
  assert.deepEqual(expired, ['none 10002', 'short 10003', 'long 60001', 'endless 300000'])
  assert.equal(detector.durationOf('long'), 60_000)
})

describe('invariant 2: a Lease expires a whole lease duration after it was last seen to change', () => {
  const worker = true
  const run = true
  for (const [name, steps, expected] of [
    [
      'a worker that renews its Lease does not expire',
      [
        [0, { worker, run, lease: '1' }],
        [9_999, { worker, run, lease: '2' }],
        [19_998, { worker, run, lease: '2' }],
      ],
      [],
    ],
    [
      'a worker that does not renew its Lease expires after 10 s',
      [
        [0, { worker, run, lease: '1' }],
        [9_999, { worker, run, lease: '1' }],
        [10_000, { worker, run, lease: '1' }],
      ],
      [10_000],
    ],
    [
      'an observer that starts late waits a whole lease duration',
      [
        [50_000, { worker, run, lease: '1' }],
        [59_999, { worker, run, lease: '1' }],
        [60_000, { worker, run, lease: '1' }],
      ],
      [60_000],
    ],
    [
      'the deletion of a Lease does not extend its deadline',
      [
        [0, { worker, run, lease: '1' }],
        [5_000, { worker, run }],
        [10_000, { worker, run }],
      ],
      [10_000],
    ],
    [
      'a worker without a Lease has one lease duration to create it',
      [
        [0, { worker }],
        [9_000, { worker, lease: '1' }],
        [10_000, { worker, lease: '1' }],
      ],
      [],
    ],
    [
      'a Run whose worker does not exist expires after 10 s',
      [
        [0, { run }],
        [9_999, { run }],
        [10_000, { run }],
      ],
      [10_000],
    ],
    [
      'a Lease that a worker left behind expires',
      [
        [0, { lease: '1' }],
        [10_000, { lease: '1' }],
      ],
      [10_000],
    ],
    [
      'a Lease that is no worker’s does not expire',
      [
        [0, { lease: '1', isOfWorker: false }],
        [10_000, { lease: '1', isOfWorker: false }],
      ],
      [],
    ],
    [
      'a worker that shut down cleanly does not expire',
      [
        [0, { worker, run, lease: '1' }],
        [20_000, {}],
      ],
      [],
    ],
    [
      'a name that is used again starts a new observation',
      [
        [0, { worker, lease: '1' }],
        [5_000, {}],
        [12_000, { worker, lease: '1' }],
      ],
      [],
    ],
  ] as [string, [number, Objects][], number[]][]) {
    test(name, () => assert.deepEqual(expiriesOf(...steps), expected))
  }
})

test('property: a worker expires exactly when its Lease was not seen to change for a lease duration', () => {
  const observations = fc.array(fc.record({ afterMs: fc.nat(12_000), renewed: fc.boolean(), hasLease: fc.boolean() }), {
    minLength: 1,
    maxLength: 30,
  })
  fc.assert(
    fc.property(observations, steps => {
      const detector = new FailureDetector(10_000)
      detector.workerChanged(workerOf('w'), 0)
      let nowMs = 0
      let version = 0
      let lastSeenVersion: number | undefined
      let changedAtMs = 0
      for (const { afterMs, renewed, hasLease } of steps) {
        nowMs += afterMs
        if (renewed) version++
        const seen = hasLease ? version : undefined
        if (seen !== undefined && seen !== lastSeenVersion) {
          changedAtMs = nowMs
          lastSeenVersion = seen
        }
        if (seen === undefined) detector.leaseDeleted('w', nowMs)
        else detector.leaseChanged(leaseOf('w', String(seen)), nowMs)
        const { expired } = detector.decide(nowMs)
        assert.equal(expired.length === 1, nowMs - changedAtMs >= 10_000)
        assert.equal(detector.isSuspect('w'), nowMs - changedAtMs >= 5_000)
        // The server did not respond, and is asked again.
        if (expired.length > 0) {
          detector.lossSettled('w', 'Failed', nowMs)
          nowMs += 500
        }
      }
    }),
    { numRuns: 500 },
  )
})

describe('suspects', () => {
  test('a worker is a suspect after half a lease duration, until it renews its Lease', () => {
    const detector = new FailureDetector(10_000)
    detector.workerChanged(workerOf('w'), 0)
    assert.deepEqual([...detector.decide(4_999).changed], [])
    assert.deepEqual([...detector.decide(5_000).changed], ['w'])
    assert.equal(detector.leaseChanged(leaseOf('w', '2'), 6_000), true)
    assert.deepEqual([...detector.decide(6_000).changed], ['w'])
    assert.equal(detector.isSuspect('w'), false)
    assert.equal(detector.leaseChanged(leaseOf('w', '3'), 6_500), false, 'a renewal in time needs no decision')
  })
  test('a worker is a suspect as soon as its process has exited, until its Worker is deleted', () => {
    const detector = new FailureDetector(10_000)
    assert.equal(detector.processExited('w'), false, 'it has not registered')
    detector.workerChanged(workerOf('w'), 0)
    detector.decide(0)
    assert.equal(detector.processExited('w'), true)
    assert.deepEqual([...detector.decide(1).changed], ['w'])
    detector.leaseChanged(leaseOf('w', '2'), 2)
    detector.decide(2)
    assert.equal(detector.isSuspect('w'), true)
    detector.workerDeleted('w', 3)
    detector.decide(3)
    assert.equal(detector.isSuspect('w'), false)
  })
})

describe('a worker whose processes have all ended', () => {
  const goneDetector = () => {
    const detector = new FailureDetector(10_000)
    detector.leaseChanged({ ...leaseOf('w', '1'), durationMs: 60_000 }, 0)
    detector.workerChanged(workerOf('w'), 0)
    assert.deepEqual(detector.decide(0).expired, [])
    assert.equal(detector.processExited('w', true), true)
    return detector
  }
  test('is lost before its Lease expires', () => {
    const detector = goneDetector()
    assert.deepEqual(detector.decide(1).expired, [{ worker: 'w', lease: { uid: 'l', resourceVersion: '1' } }])
    assert.deepEqual(detector.decide(2).expired, [], 'it is being confirmed')
    detector.lossSettled('w', 'Lost', 3)
    assert.deepEqual(
      [...detector.lost()].map(({ name }) => name),
      ['w'],
    )
  })
  test('is confirmed again after half a second, if its last renewal was not seen yet', () => {
    const detector = goneDetector()
    detector.decide(1)
    detector.lossSettled('w', 'Renewed', 2)
    assert.deepEqual([detector.decide(2).expired, detector.decide(2).requeueAfterMs], [[], 500])
    detector.leaseChanged({ ...leaseOf('w', '2'), durationMs: 60_000 }, 100)
    assert.deepEqual(detector.decide(502).expired, [{ worker: 'w', lease: { uid: 'l', resourceVersion: '2' } }])
  })
  test('may be known to be gone only after its process had exited', () => {
    const detector = new FailureDetector(10_000)
    detector.workerChanged(workerOf('w'), 0)
    detector.processExited('w')
    assert.equal(detector.processExited('w', true), true)
    assert.equal(detector.processExited('w', true), false)
    assert.deepEqual(detector.decide(1).expired, [{ worker: 'w', lease: undefined }])
  })
})

describe('the loss of a worker', () => {
  const expiredDetector = () => {
    const detector = new FailureDetector(10_000)
    detector.leaseChanged(leaseOf('w', '1'), 0)
    detector.workerChanged(workerOf('w'), 0)
    assert.equal(detector.decide(0).requeueAfterMs, 10_000)
    assert.deepEqual(detector.decide(10_000).expired, [{ worker: 'w', lease: { uid: 'l', resourceVersion: '1' } }])
    assert.deepEqual(detector.decide(20_000).expired, [], 'it is being confirmed')
    return detector
  }
  const lostOf = (detector: FailureDetector) => [...detector.lost()].map(({ name }) => name)

  test('is confirmed once, and final until what it left is removed', () => {
    const detector = expiredDetector()
    detector.lossSettled('w', 'Lost', 20_000)
    assert.deepEqual([detector.decide(40_000).expired, lostOf(detector), detector.isSuspect('w')], [[], ['w'], true])
    detector.workerDeleted('w', 40_000)
    detector.leaseDeleted('w', 40_000)
    assert.deepEqual([lostOf(detector), detector.decide(40_000).requeueAfterMs], [[], Number.POSITIVE_INFINITY])
  })
  test('is dropped when the server has a renewal that the watch has not delivered', () => {
    const detector = expiredDetector()
    detector.lossSettled('w', 'Renewed', 20_000)
    assert.deepEqual([detector.decide(29_999).expired, lostOf(detector)], [[], []])
    assert.equal(detector.decide(30_000).expired.length, 1)
  })
  test('is confirmed again 500 ms after the server did not respond', () => {
    const detector = expiredDetector()
    detector.lossSettled('w', 'Failed', 20_000)
    assert.equal(detector.decide(20_000).requeueAfterMs, 500)
    assert.equal(detector.decide(20_499).expired.length, 0)
    assert.equal(detector.isSuspect('w'), true)
    assert.equal(detector.decide(20_500).expired.length, 1)
  })
  test('does not concern a new worker of its name', () => {
    const detector = expiredDetector()
    detector.lossSettled('w', 'Lost', 20_000)
    detector.workerChanged(workerOf('w', 'another'), 21_000)
    assert.deepEqual([detector.decide(21_000).expired, lostOf(detector), detector.isSuspect('w')], [[], [], false])
    assert.equal(detector.decide(31_000).expired.length, 1)
  })
})

test('rejects a lease duration that is not positive', () => {
  assert.throws(() => new FailureDetector(0), /durationMs must be a number > 0, got 0/)
})
