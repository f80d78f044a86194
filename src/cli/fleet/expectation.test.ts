import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack } from '../../api/index.ts'
import { expectedStateAnnotation, fleetOutcomes } from './expectation.ts'
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

const expecting = (state: string) => ({ [expectedStateAnnotation]: state })

for (const [name, stack, want] of [
  ['a Ready Stack', makeStack('a', { conditions: ready }), 'reached'],
  ['a Stack without status', makeStack('a'), 'pending'],
  ['a reconciling Stack', makeStack('a', { conditions: working }), 'pending'],
  ['a Stack whose latest generation was not observed', makeStack('a', { conditions: ready, generation: 2 }), 'pending'],
  ['an expected plan awaiting approval', makeStack('a', { conditions: awaiting, annotations: expecting('AwaitingApproval') }), 'reached'],
  [
    'an expected plan that a user has approved',
    makeStack('a', { conditions: ready, annotations: expecting('AwaitingApproval') }),
    'reached',
  ],
  ['an unexpected plan awaiting approval', makeStack('a', { conditions: awaiting }), 'pending'],
  ['an expected failure', makeStack('a', { conditions: failed, annotations: expecting('Failed') }), 'reached'],
  ['an unexpected failure', makeStack('a', { conditions: failed }), 'pending'],
  ['an unexpected success', makeStack('a', { conditions: ready, annotations: expecting('Failed') }), 'pending'],
  ['a missing engine', makeStack('a', { conditions: noEngine }), 'skipped'],
  [
    'a missing engine instead of an expected failure',
    makeStack('a', { conditions: noEngine, annotations: expecting('Failed') }),
    'skipped',
  ],
] as const) {
  test(`${name} is ${want}`, () => equal(fleetOutcomes([stack]).get('shop/a')?.kind, want))
}

const kinds = (stacks: Stack[]) => Object.fromEntries([...fleetOutcomes(stacks)].map(([key, { kind }]) => [key, kind]))

test('skips Stacks that depend, also indirectly, on a Stack without an engine', () => {
  deepEqual(
    kinds([
      makeStack('network', { conditions: noEngine }),
      makeStack('cluster', { conditions: working, outputsOf: ['network'] }),
      makeStack('app', { conditions: working, dependsOn: ['cluster'] }),
      makeStack('other', { conditions: working }),
    ]),
    { 'shop/network': 'skipped', 'shop/cluster': 'skipped', 'shop/app': 'skipped', 'shop/other': 'pending' },
  )
})

test('terminates on a dependency cycle', () => {
  deepEqual(kinds([makeStack('a', { dependsOn: ['b'] }), makeStack('b', { dependsOn: ['a'] })]), {
    'shop/a': 'pending',
    'shop/b': 'pending',
  })
})
