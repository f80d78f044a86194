import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Run, Worker } from '../../../api/index.ts'
import { testRun, testWorker } from '../objects.testing.ts'
import { decideLost } from './decide-lost.ts'
import { LeaseObserver } from './lease-observer.ts'

type Objects = { workers?: Worker[]; runs?: Run[]; leases?: Record<string, string> }

/** Decides at the given times with the given objects. Returns which workers were declared lost, and when. */
function observeAll(...observations: [atMs: number, Objects][]): string[] {
  const observer = new LeaseObserver(10_000)
  return observations.flatMap(([atMs, { workers = [], runs = [], leases = {} }]) =>
    decideLost({ workers, runs, leases: new Map(Object.entries(leases)), observer, nowMs: atMs }).lost.map(
      ({ worker, runs: lost }) => `${atMs}: ${worker} [${lost.map(({ metadata }) => metadata.name).join(' ')}]`,
    ),
  )
}

const workers = [testWorker('w')]
const runs = [testRun('r', { worker: 'w', phase: 'Applying' })]

describe('invariant 2: a Lease expires a whole lease duration after it was last seen to change', () => {
  for (const [name, observations, expected] of [
    [
      'a worker that renews its Lease is not lost',
      [
        [0, { workers, runs, leases: { w: '1' } }],
        [9_999, { workers, runs, leases: { w: '2' } }],
        [19_998, { workers, runs, leases: { w: '2' } }],
      ],
      [],
    ],
    [
      'a worker that does not renew its Lease is lost after 10 s',
      [
        [0, { workers, runs, leases: { w: '1' } }],
        [9_999, { workers, runs, leases: { w: '1' } }],
        [10_000, { workers, runs, leases: { w: '1' } }],
      ],
      ['10000: w [r]'],
    ],
    [
      'an observer that starts late waits a whole lease duration',
      [
        [50_000, { workers, runs, leases: { w: '1' } }],
        [59_999, { workers, runs, leases: { w: '1' } }],
        [60_000, { workers, runs, leases: { w: '1' } }],
      ],
      ['60000: w [r]'],
    ],
    [
      'the deletion of a Lease does not extend its deadline',
      [
        [0, { workers, runs, leases: { w: '1' } }],
        [5_000, { workers, runs }],
        [10_000, { workers, runs }],
      ],
      ['10000: w [r]'],
    ],
    [
      'a worker without a Lease has one lease duration to create it',
      [
        [0, { workers }],
        [9_000, { workers, leases: { w: '1' } }],
        [10_000, { workers, leases: { w: '1' } }],
      ],
      [],
    ],
    [
      'a Run whose worker does not exist is lost after 10 s',
      [
        [0, { runs }],
        [9_999, { runs }],
        [10_000, { runs }],
      ],
      ['10000: w [r]'],
    ],
    [
      'a Lease that a worker left behind is removed',
      [
        [0, { leases: { w: '1' } }],
        [10_000, { leases: { w: '1' } }],
      ],
      ['10000: w []'],
    ],
    [
      'a worker that shut down cleanly is not lost',
      [
        [0, { workers, runs, leases: { w: '1' } }],
        [20_000, {}],
      ],
      [],
    ],
    [
      'a name that is used again starts a new observation',
      [
        [0, { workers, leases: { w: '1' } }],
        [5_000, {}],
        [12_000, { workers, leases: { w: '1' } }],
      ],
      [],
    ],
    [
      'ended Runs are ignored',
      [
        [0, { runs: [testRun('r', { worker: 'w', phase: 'Succeeded' })] }],
        [10_000, { runs: [testRun('r', { worker: 'w', phase: 'Succeeded' })] }],
      ],
      [],
    ],
  ] as [string, [number, Objects][], string[]][]) {
    test(name, () => assert.deepEqual(observeAll(...observations), expected))
  }
})

test('property: a worker is lost exactly when its Lease was not seen to change for a lease duration', () => {
  const observations = fc.array(fc.record({ afterMs: fc.nat(12_000), renewed: fc.boolean(), hasLease: fc.boolean() }), {
    minLength: 1,
    maxLength: 30,
  })
  fc.assert(
    fc.property(observations, steps => {
      const observer = new LeaseObserver(10_000)
      let nowMs = 0
      let version = 0
      let lastSeenVersion: number | undefined
      let changedAtMs: number | undefined
      for (const { afterMs, renewed, hasLease } of steps) {
        nowMs += afterMs
        if (renewed) version++
        const seen = hasLease ? version : undefined
        if (changedAtMs === undefined || (seen !== undefined && seen !== lastSeenVersion)) {
          changedAtMs = nowMs
          lastSeenVersion = seen
        }
        const leases = new Map(seen === undefined ? [] : [['w', String(seen)]])
        const { lost } = decideLost({ workers, runs, leases, observer, nowMs })
        assert.equal(lost.length === 1, nowMs - changedAtMs >= 10_000)
      }
    }),
    { numRuns: 500 },
  )
})

test('the observer returns the time until the next expiry', () => {
  const observer = new LeaseObserver(10_000)
  assert.equal(observer.nextExpiryMs(0), undefined)
  observer.observe('a', '1', 0)
  observer.observe('b', '1', 4_000)
  assert.equal(observer.nextExpiryMs(4_000), 6_000)
  observer.observe('a', '2', 5_000)
  assert.equal(observer.nextExpiryMs(5_000), 9_000)
  assert.throws(() => new LeaseObserver(0), /durationMs must be a number > 0, got 0/)
})
