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
const choose = (candidates: Candidate[], cacheKey?: string, domains: Record<string, number> = {}) =>
  chooseWorker(candidates, cacheKey, domain => domains[domain] ?? 0)?.worker.metadata.name

describe('the best of those that would do', () => {
  test('the fullest, so that idle ones can go', () => assert.equal(choose([candidate('a'), candidate('b', { active: 1 })]), 'b'))
  test('of two alike the first by name', () => assert.equal(choose([candidate('b'), candidate('a')]), 'a'))
  test('the failure domain with the fewest Runs goes before the fullest', () => {
    const both = [candidate('a', { zone: 'x', active: 1 }), candidate('b', { zone: 'y' })]
    assert.equal(choose(both, undefined, { x: 3, y: 2 }), 'b')
  })
  test('one that holds the dependencies goes before all that', () => {
    const both = [candidate('a', { active: 1 }), candidate('b', { caches: ['git x'] })]
    assert.equal(choose(both, 'git x'), 'b')
    assert.equal(choose(both, 'git y'), 'a')
    assert.equal(choose(both), 'a')
  })
  test('but only within a bound', () => {
    const both = [candidate('a', { zone: 'x', caches: ['k'] }), candidate('b', { zone: 'y' })]
    assert.equal(choose(both, 'k', { x: affinityBound, y: 0 }), 'a')
    assert.equal(choose(both, 'k', { x: affinityBound + 1, y: 0 }), 'b')
  })
  test('nobody of nobody', () => assert.equal(choose([]), undefined))
})

test('a large pool is sampled: as many as said, none twice, by the given dice', () => {
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

describe('what a Worker lacks', () => {
  const requirements = (stack: object) => requirementsOf(testRun('r', { stack }).spec)
  const has = (status: object, labels?: Record<string, string>) => testWorker('w', { status, ...(labels && { labels }) })
  for (const [what, stack, worker, want] of [
    ['nothing is asked for', {}, has({}), undefined],
    ['a label that is missing', { placement: { workerLabels: { gpu: 'a100' } } }, has({}), 'label gpu=a100'],
    [
      'a label that says something else',
      { placement: { workerLabels: { gpu: 'a100' } } },
      has({}, { gpu: 't4' }),
      'label gpu=a100, it has gpu=t4',
    ],
    ['a label that is there', { placement: { workerLabels: { gpu: 'a100' } } }, has({}, { gpu: 'a100' }), undefined],
    ['an engine that is not installed', { engine: 'terraform' }, has({ engines: { opentofu: '1.10.0' } }), 'engine terraform'],
    ['a worker that does not say what it has', { engine: 'terraform' }, has({}), undefined],
    [
      'a version that will do',
      { engine: 'terraform', placement: { engineVersion: '>= 1.9' } },
      has({ engines: { terraform: '1.11.4' } }),
      undefined,
    ],
    [
      'one that will not',
      { engine: 'terraform', placement: { engineVersion: '~> 1.9' } },
      has({ engines: { terraform: '2.0.1' } }),
      'engine terraform ~> 1.9, it has 2.0.1',
    ],
    [
      'one that is not known',
      { engine: 'terraform', placement: { engineVersion: '~> 1.9' } },
      has({}),
      'engine terraform ~> 1.9, it does not say which version it has',
    ],
    [
      'an engine that nobody of the pool has: the Run will say so',
      { engine: 'command' },
      has({ engines: { opentofu: '1.10.0' } }),
      undefined,
    ],
    ['memory', { resources: { memory: '8Gi' } }, has({ capacity: { memory: '4Gi' } }), 'memory 8192Mi, it has 4Gi in all'],
    ['cpu', { resources: { cpu: '1.5' } }, has({ capacity: { cpu: '1' } }), 'cpu 1500m, it has 1 in all'],
    ['enough of both', { resources: { cpu: '1', memory: '4Gi' } }, has({ capacity: { cpu: '1', memory: '4Gi' } }), undefined],
  ] as const) {
    test(what, () => assert.equal(unmetRequirement(requirements(stack), worker, new Set(['terraform', 'opentofu'])), want))
  }
})
