import { equal, notEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { Worker, WorkerPool } from '../../../api/index.ts'
import { outdatedWorkers, podTemplateDigest } from './pod-template.ts'
import { makeWorker } from './pods/make-pod.ts'

const poolOf = (image: string, spec: Partial<WorkerPool['spec']> = {}) =>
  ({
    metadata: { name: 'warm' },
    spec: { mode: 'Pod', lifecycle: 'Warm', template: { spec: { containers: [{ name: 'worker', image }] } }, ...spec },
  }) as WorkerPool
const workersOf = (...pools: readonly WorkerPool[]) => pools.map((pool, index) => makeWorker(pool, `w${index}`) as unknown as Worker)

test('the order of keys makes no other template, and another image does', () => {
  const withOrder = (spec: object) => podTemplateDigest({ spec: { mode: 'Pod', template: { spec } } } as Pick<WorkerPool, 'spec'>)
  equal(withOrder({ a: 1, b: [{ c: 2, d: 3 }] }), withOrder({ b: [{ d: 3, c: 2 }], a: 1 }))
  notEqual(podTemplateDigest(poolOf('a:1')), podTemplateDigest(poolOf('a:2')))
})

test('Warm workers whose Pod was created from an earlier template are counted', () => {
  const workers = workersOf(poolOf('a:1'), poolOf('a:1'), poolOf('a:2'))
  equal(
    outdatedWorkers(poolOf('a:2'), () => workers),
    2,
  )
  equal(
    outdatedWorkers(poolOf('a:1'), () => workers),
    1,
  )
})

test('a Worker without a record does not count, and OneShot workers and processes are not counted', () => {
  const unknown = { metadata: { name: 'w' }, spec: {} } as unknown as Worker
  equal(
    outdatedWorkers(poolOf('a:2'), () => [unknown]),
    0,
  )
  const workers = workersOf(poolOf('a:1'))
  equal(
    outdatedWorkers(poolOf('a:2', { lifecycle: 'OneShot' }), () => workers),
    undefined,
  )
  equal(
    outdatedWorkers(poolOf('a:2', { mode: 'Process' }), () => workers),
    undefined,
  )
})
