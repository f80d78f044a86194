import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack } from '../../api/index.ts'
import { expectAnnotation, judgeFleet } from './expectation.ts'
import { makeStack } from './fleet.testing.ts'

const condition = (type: string, reason: string, status: 'True' | 'False' = 'True') => ({
  type,
  status,
  reason,
  message: `because ${reason}`,
  lastTransitionTime: '2026-01-01T00:00:00Z',
})
const ready = [condition('Ready', 'Applied')]
const awaiting = [condition('Ready', 'AwaitingApproval', 'False'), condition('AwaitingApproval', 'PlanReady')]
const failed = [condition('Ready', 'PlanFailed', 'False'), condition('Stalled', 'PlanFailed')]
const noEngine = [condition('Ready', 'EngineNotFound', 'False'), condition('Stalled', 'EngineNotFound')]
const working = [condition('Ready', 'Progressing', 'False'), condition('Reconciling', 'Progressing')]

const expecting = (state: string) => ({ [expectAnnotation]: state })

for (const [name, stack, want] of [
  ['a Ready Stack', makeStack('a', { conditions: ready }), 'reached'],
  ['a Stack nobody looked at', makeStack('a'), 'waiting'],
  ['a Stack at work', makeStack('a', { conditions: working }), 'waiting'],
  ['a Stack whose new generation was not seen', makeStack('a', { conditions: ready, generation: 2 }), 'waiting'],
  ['a plan that waits, as expected', makeStack('a', { conditions: awaiting, annotations: expecting('AwaitingApproval') }), 'reached'],
  ['a plan that waits, against expectation', makeStack('a', { conditions: awaiting }), 'waiting'],
  ['a failure, as expected', makeStack('a', { conditions: failed, annotations: expecting('Failed') }), 'reached'],
  ['a failure, against expectation', makeStack('a', { conditions: failed }), 'waiting'],
  ['success where failure was expected', makeStack('a', { conditions: ready, annotations: expecting('Failed') }), 'waiting'],
  ['a missing engine', makeStack('a', { conditions: noEngine }), 'skipped'],
  ['a missing engine where failure was expected', makeStack('a', { conditions: noEngine, annotations: expecting('Failed') }), 'skipped'],
] as const) {
  test(`${name} is ${want}`, () => equal(judgeFleet([stack]).get('shop/a')?.kind, want))
}

const kinds = (stacks: Stack[]) => Object.fromEntries([...judgeFleet(stacks)].map(([key, { kind }]) => [key, kind]))

test('what waits for a Stack without engine is skipped too, over several links', () => {
  deepEqual(
    kinds([
      makeStack('network', { conditions: noEngine }),
      makeStack('cluster', { conditions: working, outputsOf: ['network'] }),
      makeStack('app', { conditions: working, dependsOn: ['cluster'] }),
      makeStack('other', { conditions: working }),
    ]),
    { 'shop/network': 'skipped', 'shop/cluster': 'skipped', 'shop/app': 'skipped', 'shop/other': 'waiting' },
  )
})

test('a dependency cycle ends', () => {
  deepEqual(kinds([makeStack('a', { dependsOn: ['b'] }), makeStack('b', { dependsOn: ['a'] })]), {
    'shop/a': 'waiting',
    'shop/b': 'waiting',
  })
})
