import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { phaseOf, reportedState, type StackSpec, type StackStateName, stackStates } from '../../api/index.ts'
import { Simulator } from './simulator.testing.ts'

// The simulator checks after each decision that the conditions are one of the states in api/stack-conditions.ts. Most Runs here succeed, so that
// Stacks are often applied and drift from there; `decide-stack.property.test.ts` has arbitrary phases.

type End = 'Succeeded' | 'Failed' | 'Canceled' | 'Lost'
type Step =
  | { do: 'finish'; end: End; changes: number; isApplying: boolean; retryable: boolean }
  | { do: 'put'; change: Partial<StackSpec> }
  | { do: 'request'; type: string; id: number }
  | { do: 'approve' }
  | { do: 'advance'; ms: number }
  | { do: 'revision'; to: 'r1' | 'r2' | 'error' | 'persistent' }
  | { do: 'restore' }
  | { do: 'delete' }

const change: fc.Arbitrary<Partial<StackSpec>> = fc.oneof(
  fc.record({ approval: fc.constantFrom('Auto' as const, 'Manual' as const) }),
  fc.record({ drift: fc.constantFrom('Correct' as const, 'Report' as const, 'Off' as const) }),
  fc.record({ interval: fc.constantFrom('1m', '1h', undefined) }) as fc.Arbitrary<Partial<StackSpec>>,
  fc.record({ suspend: fc.boolean() }),
  fc.record({ variables: fc.record({ size: fc.nat(2) }) }),
  fc.record({ timeout: fc.constantFrom('5m', '6m') }),
  fc.record({ retry: fc.record({ limit: fc.constantFrom(0, 1, 50) }) }),
  fc.record({ deletionProtection: fc.boolean() }),
)
const end = fc.oneof(
  { weight: 6, arbitrary: fc.constant('Succeeded' as const) },
  { weight: 3, arbitrary: fc.constantFrom('Failed' as const, 'Canceled' as const, 'Lost' as const) },
)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant('finish' as const),
      end,
      changes: fc.nat(1),
      isApplying: fc.boolean(),
      retryable: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('put' as const), change }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('request' as const),
      type: fc.constantFrom('plan', 'apply', 'refresh', 'plan-destroy'),
      id: fc.nat(50),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('approve' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(10_000, 400_000, 4_000_000) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('revision' as const),
      to: fc.constantFrom('r1' as const, 'r2' as const, 'error' as const, 'persistent' as const),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'restore' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'delete' as const }) },
)

function play(simulator: Simulator, next: Step, plans: { count: number }): void {
  const stack = simulator.stacks().find(({ metadata }) => metadata.name === 'app')
  if (!stack) {
    simulator.put('app', {})
    return
  }
  switch (next.do) {
    case 'finish': {
      if (!simulator.activeRun('app')) return
      const plan = { digest: `sha256:${plans.count++}`, add: next.changes, change: 0, destroy: 0 }
      if (next.isApplying && phaseOf(simulator.activeRun('app')!) !== 'Applying') simulator.report('app', 'Applying', { plan })
      if (!simulator.activeRun('app')) return
      simulator.report('app', next.end, {
        ...(next.end === 'Succeeded' && { plan, changed: next.changes > 0, outputsDigest: 'same' }),
        ...(next.end === 'Failed' && { reason: 'ApplyFailed', message: `failure ${plans.count % 3}`, retryable: next.retryable }),
        ...(next.end === 'Canceled' && { reason: 'Canceled', message: 'canceled on request' }),
      })
      return
    }
    case 'put':
      simulator.put('app', next.change)
      return
    case 'request':
      simulator.annotate('app', { requestedRun: `${next.type}:${next.id}` })
      return
    case 'approve':
      simulator.annotate('app', { approvedPlan: stack.status?.plan?.digest ?? 'sha256:other' })
      return
    case 'advance':
      simulator.advance(next.ms)
      return
    case 'revision': {
      const error = { reason: 'SourceUnavailable', message: 'no answer', retryable: true } as const
      const attempts = { count: 10, sinceMs: 0, lastMs: 0 }
      simulator.setRevision('app', next.to === 'error' ? { error } : next.to === 'persistent' ? { error: { ...error, attempts } } : next.to)
      return
    }
    case 'restore':
      simulator.restore('app', (stack.status?.lastRunNumber ?? 0) + 1)
      return
    case 'delete':
      simulator.delete('app')
      return
  }
}

const finish = (ends: End, isApplying: boolean) => ({ do: 'finish', end: ends, changes: 0, isApplying, retryable: false }) as const
const request = (type: string) => ({ do: 'request', type, id: 0 }) as const
const later = { do: 'advance', ms: 10_000 } as const
/** A requested Apply fails while it applies, and further Runs fail before they do: random steps rarely have this order. */
const incompleteApply: Step[] = [
  { do: 'put', change: {} },
  finish('Succeeded', false),
  request('apply'),
  { do: 'revision', to: 'r1' },
  request('plan'),
  later,
  later,
  finish('Failed', true),
  request('refresh'),
  finish('Failed', false),
  finish('Failed', false),
  finish('Failed', false),
]

test('a Stack always reports exactly one of the documented states, and each of them occurs', () => {
  const reached = new Set<StackStateName>()
  fc.assert(
    fc.property(fc.array(step, { minLength: 10, maxLength: 60 }), steps => {
      const simulator = new Simulator()
      const plans = { count: 0 }
      for (const next of steps) {
        play(simulator, next, plans)
        for (const stack of simulator.stacks()) {
          const state = reportedState(stack)
          if (state) reached.add(state)
        }
      }
    }),
    { numRuns: Number(process.env.OARLOCK_FUZZ_RUNS ?? 300), examples: [[incompleteApply]] },
  )
  assert.deepEqual([...reached].sort(), Object.keys(stackStates).sort())
})
