import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerPool } from '../../api/index.ts'
import { parseLabelSelector } from '../../kubernetes/object/index.ts'
import { externalMetricValues, metricNames } from './pool-metrics.ts'

const pool = (name: string, status: WorkerPool['status'], spec: Partial<WorkerPool['spec']> = {}, labels?: Record<string, string>) =>
  ({
    metadata: { name, uid: name, resourceVersion: '1', generation: 1, creationTimestamp: '', labels },
    spec: { mode: 'External', ...spec },
    status,
  }) as WorkerPool
const counts = { queued: 0, busy: 0, starting: 0, workers: 0, desired: 0 }
const edge = pool('edge', { ...counts, queued: 7, busy: 30, workers: 31, desired: 32 }, { slots: 2, max: 32 }, { team: 'a', pool: 'x' })
const west = pool('west', { ...counts, queued: 1, desired: 1 }, {}, { team: 'a' })
const values = (pools: WorkerPool[], metric: string, selector: string) =>
  externalMetricValues(pools, { metric, selector: parseLabelSelector(selector), nowMs: 0 })

for (const [metric, value] of [
  ['oarlock_pool_desired_workers', '32'],
  ['oarlock_pool_busy_workers', '30'],
  ['oarlock_pool_registered_workers', '31'],
  ['oarlock_runs_queued', '7'],
] as const)
  test(`${metric} is that of the status of the pool`, () => {
    deepEqual(values([edge, west], metric, 'pool=edge'), [
      { metricName: metric, metricLabels: { team: 'a', pool: 'edge', mode: 'External' }, timestamp: '1970-01-01T00:00:00Z', value },
    ])
  })

test('every metric has a test', () => equal(metricNames.length, 4))

for (const [selector, pools] of [
  ['', ['edge', 'west']],
  ['team=a', ['edge', 'west']],
  ['pool in (west, north)', ['west']],
  ['mode=External,pool!=west', ['edge']],
] as const)
  test(`selector ${JSON.stringify(selector)} matches by name, mode and labels of pools`, () => {
    deepEqual(
      values([edge, west], 'oarlock_runs_queued', selector).map(({ metricLabels }) => metricLabels.pool),
      pools,
    )
  })

for (const [name, pools, metric, selector, reason, message] of [
  [
    'an unknown metric',
    [edge],
    'runs',
    '',
    'NotFound',
    /metric "runs" of external.metrics.k8s.io not found: use oarlock_pool_desired_workers, /,
  ],
  ['a property of every object', [edge], 'constructor', '', 'NotFound', /metric "constructor"/],
  ['an unknown pool', [edge, west], 'oarlock_runs_queued', 'pool=egde', 'NotFound', /; their names are edge, west$/],
  ['no pools at all', [], 'oarlock_runs_queued', '', 'NotFound', /; there are none$/],
  [
    'many pools',
    Array.from({ length: 12 }, (_, i) => pool(`p${10 + i}`, counts)),
    'oarlock_runs_queued',
    'a=b',
    'NotFound',
    /p19 and 2 more$/,
  ],
  [
    'a pool without a status',
    [edge, pool('new', undefined)],
    'oarlock_runs_queued',
    '',
    'ServiceUnavailable',
    /workerpool "new" has no status yet/,
  ],
] as const)
  test(`rejects ${name}`, () => {
    throws(() => values([...pools], metric, selector), { name: 'StatusError', reason, message })
  })
