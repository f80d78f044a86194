import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { testRun, testWorker } from '../objects.testing.ts'
import { requirementsOf } from '../queue/index.ts'
import { affinityBound, type Candidate, chooseWorker, failureDomainLabel, sample, sampleSize } from './choose-worker.ts'
import { unmetRequirement } from './match-worker.ts'

const candidate = (name: string, { active = 0, zone, caches }: { active?: number; zone?: string; caches?: string[] } = {}): Candidate => ({
  worker: testWorker(name, { ...(zone && { labels: { [failureDomainLabel]: zone } }), status: { ...(caches && { caches }) } }),
  active,
  free: 1,
})
const choose = (candidates: Candidate[], cacheKey?: string | string[], domains: Record<string, number> = {}) =>
  chooseWorker(candidates, typeof cacheKey === 'string' ? [cacheKey] : (cacheKey ?? []), domain => domains[domain] ?? 0)?.worker.metadata
    .name

describe('chooseWorker', () => {
  test('prefers the most loaded Worker, so that idle ones can be drained', () =>
    assert.equal(choose([candidate('a'), candidate('b', { active: 1 })]), 'b'))
  test('breaks a tie by name', () => assert.equal(choose([candidate('b'), candidate('a')]), 'a'))
  test('prefers the failure domain with the fewest Runs to the most loaded Worker', () => {
    const both = [candidate('a', { zone: 'x', active: 1 }), candidate('b', { zone: 'y' })]
    assert.equal(choose(both, undefined, { x: 3, y: 2 }), 'b')
  })
  test('prefers a Worker with cached dependencies to both', () => {
    const both = [candidate('a', { active: 1 }), candidate('b', { caches: ['git x'] })]
    assert.equal(choose(both, 'git x'), 'b')
    assert.equal(choose(both, 'git y'), 'a')
    assert.equal(choose(both), 'a')
  })
  test('prefers installed dependencies to a cached source, and that to neither', () => {
    const source = candidate('a', { active: 1, caches: ['source'] })
    const installed = candidate('b', { caches: ['x', 'installed'] })
    const neither = candidate('c', { active: 2 })
    const keys = ['installed', 'source']
    assert.equal(choose([neither, source, installed], keys), 'b')
    assert.equal(choose([neither, source], keys), 'a')
    assert.equal(choose([neither], keys), 'c')
  })
  test('prefers cached dependencies only within the affinity bound', () => {
    const both = [candidate('a', { zone: 'x', caches: ['k'] }), candidate('b', { zone: 'y' })]
    assert.equal(choose(both, 'k', { x: affinityBound, y: 0 }), 'a')
    assert.equal(choose(both, 'k', { x: affinityBound + 1, y: 0 }), 'b')
  })
  test('returns undefined without candidates', () => assert.equal(choose([]), undefined))
})

test('draws sampleSize distinct Workers of a large pool, and all of a small one', () => {
  const all = Array.from({ length: 1_000 }, (_, i) => i)
  let seed = 1
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed / 2_147_483_647
  }
  const picked = sample(all, random)
  assert.equal(new Set(picked).size, sampleSize)
  assert.deepEqual(sample([1, 2, 3], random), [1, 2, 3])
})

describe('unmetRequirement', () => {
  const requirements = (stack: object) => requirementsOf(testRun('r', { stack }).spec)
  const has = (status: object, labels?: Record<string, string>) => testWorker('w', { status, ...(labels && { labels }) })
  for (const [name, stack, worker, expected] of [
    ['no requirements', {}, has({}), undefined],
    ['a missing label', { placement: { workerLabels: { gpu: 'a100' } } }, has({}), 'label gpu=a100'],
    [
      'a label with another value',
      { placement: { workerLabels: { gpu: 'a100' } } },
      has({}, { gpu: 't4' }),
      'label gpu=a100 (it has gpu=t4)',
    ],
    ['a matching label', { placement: { workerLabels: { gpu: 'a100' } } }, has({}, { gpu: 'a100' }), undefined],
    ['an engine that is not installed', { engine: 'terraform' }, has({ engines: { opentofu: '1.10.0' } }), 'engine terraform'],
    ['a worker that does not report its engines', { engine: 'terraform' }, has({}), undefined],
    [
      'a version in the required range',
      { engine: 'terraform', placement: { engineVersion: '>= 1.9' } },
      has({ engines: { terraform: '1.11.4' } }),
      undefined,
    ],
    [
      'a version outside the required range',
      { engine: 'terraform', placement: { engineVersion: '~> 1.9' } },
      has({ engines: { terraform: '2.0.1' } }),
      'engine terraform ~> 1.9 (its version is 2.0.1)',
    ],
    [
      'an unknown version',
      { engine: 'terraform', placement: { engineVersion: '~> 1.9' } },
      has({}),
      'engine terraform ~> 1.9 (its version is unknown)',
    ],
    [
      'an engine that no worker of the pool has: the Run will fail with EngineNotFound',
      { engine: 'command' },
      has({ engines: { opentofu: '1.10.0' } }),
      undefined,
    ],
    ['memory', { resources: { memory: '8Gi' } }, has({ capacity: { memory: '4Gi' } }), 'memory 8Gi (its capacity is 4Gi)'],
    ['cpu', { resources: { cpu: '1.5' } }, has({ capacity: { cpu: '1' } }), 'cpu 1500m (its capacity is 1)'],
    ['enough cpu and memory', { resources: { cpu: '1', memory: '4Gi' } }, has({ capacity: { cpu: '1', memory: '4Gi' } }), undefined],
  ] as const) {
    test(name, () => assert.equal(unmetRequirement(requirements(stack), worker, new Set(['terraform', 'opentofu'])), expected))
  }
})
