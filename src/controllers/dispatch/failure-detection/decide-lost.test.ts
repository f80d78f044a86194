import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Run, Worker } from '../../../api/index.ts'
import { testRun, testWorker } from '../objects.testing.ts'
import { decideLost } from './decide-lost.ts'
import { LeaseObserver } from './lease-observer.ts'

type World = { workers?: Worker[]; runs?: Run[]; leases?: Record<string, string> }

/** Looks at the world at the given times; says who is dead when. */
function watch(...looks: [atMs: number, World][]): string[] {
  const observer = new LeaseObserver(10_000)
  return looks.flatMap(([atMs, { workers = [], runs = [], leases = {} }]) =>
    decideLost({ workers, runs, leases: new Map(Object.entries(leases)), observer, nowMs: atMs }).lost.map(
      ({ worker, runs: lost }) => `${atMs}: ${worker} [${lost.map(({ metadata }) => metadata.name).join(' ')}]`,
    ),
  )
}

const workers = [testWorker('w')]
const runs = [testRun('r', { worker: 'w', phase: 'Applying' })]

describe('invariant 2: a Lease is expired a whole duration after it was last seen to change', () => {
  for (const [what, looks, want] of [
    [
      'a worker that renews lives',
      [
        [0, { workers, runs, leases: { w: '1' } }],
        [9_999, { workers, runs, leases: { w: '2' } }],
        [19_998, { workers, runs, leases: { w: '2' } }],
      ],
      [],
    ],
    [
      'one that does not is dead after 10 s',
      [
        [0, { workers, runs, leases: { w: '1' } }],
        [9_999, { workers, runs, leases: { w: '1' } }],
        [10_000, { workers, runs, leases: { w: '1' } }],
      ],
      ['10000: w [r]'],
    ],
    [
      'an observer that comes late waits a whole duration',
      [
        [50_000, { workers, runs, leases: { w: '1' } }],
        [59_999, { workers, runs, leases: { w: '1' } }],
        [60_000, { workers, runs, leases: { w: '1' } }],
      ],
      ['60000: w [r]'],
    ],
    [
      'a Lease that goes away wins no time',
      [
        [0, { workers, runs, leases: { w: '1' } }],
        [5_000, { workers, runs }],
        [10_000, { workers, runs }],
      ],
      ['10000: w [r]'],
    ],
    [
      'a worker without a Lease has one duration to get it',
      [
        [0, { workers }],
        [9_000, { workers, leases: { w: '1' } }],
        [10_000, { workers, leases: { w: '1' } }],
      ],
      [],
    ],
    [
      'a Run of a worker that is not there at all',
      [
        [0, { runs }],
        [9_999, { runs }],
        [10_000, { runs }],
      ],
      ['10000: w [r]'],
    ],
    [
      'what a worker left behind when it ended: its Lease',
      [
        [0, { leases: { w: '1' } }],
        [10_000, { leases: { w: '1' } }],
      ],
      ['10000: w []'],
    ],
    [
      'a worker that ended well leaves nothing to bury',
      [
        [0, { workers, runs, leases: { w: '1' } }],
        [20_000, {}],
      ],
      [],
    ],
    [
      'a name that comes back starts anew',
      [
        [0, { workers, leases: { w: '1' } }],
        [5_000, {}],
        [12_000, { workers, leases: { w: '1' } }],
      ],
      [],
    ],
    [
      'Runs that have ended are nobody’s business',
      [
        [0, { runs: [testRun('r', { worker: 'w', phase: 'Succeeded' })] }],
        [10_000, { runs: [testRun('r', { worker: 'w', phase: 'Succeeded' })] }],
      ],
      [],
    ],
  ] as [string, [number, World][], string[]][]) {
    test(what, () => assert.deepEqual(watch(...looks), want))
  }
})

test('property: never dead within a duration of a change that was seen, always dead after it', () => {
  const looks = fc.array(fc.record({ afterMs: fc.nat(12_000), renewed: fc.boolean(), hasLease: fc.boolean() }), {
    minLength: 1,
    maxLength: 30,
  })
  fc.assert(
    fc.property(looks, steps => {
      const observer = new LeaseObserver(10_000)
      let nowMs = 0
      let token = 0
      let lastSeenToken: number | undefined
      let changedAtMs: number | undefined
      for (const { afterMs, renewed, hasLease } of steps) {
        nowMs += afterMs
        if (renewed) token++
        const seen = hasLease ? token : undefined
        if (changedAtMs === undefined || (seen !== undefined && seen !== lastSeenToken)) {
          changedAtMs = nowMs
          lastSeenToken = seen
        }
        const leases = new Map(seen === undefined ? [] : [['w', String(seen)]])
        const { lost } = decideLost({ workers, runs, leases, observer, nowMs })
        assert.equal(lost.length === 1, nowMs - changedAtMs >= 10_000)
      }
    }),
    { numRuns: 500 },
  )
})

test('the observer says when to look again', () => {
  const observer = new LeaseObserver(10_000)
  assert.equal(observer.nextExpiryMs(0), undefined)
  observer.observe('a', '1', 0)
  observer.observe('b', '1', 4_000)
  assert.equal(observer.nextExpiryMs(4_000), 6_000)
  observer.observe('a', '2', 5_000)
  assert.equal(observer.nextExpiryMs(5_000), 9_000)
  assert.throws(() => new LeaseObserver(0), /durationMs must be a number > 0, got 0/)
})
