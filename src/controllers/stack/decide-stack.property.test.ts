import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type ApprovalPolicy, isEnded, phaseOf, type RunPhase, runPhases, type StackSpec, workerBusyReason } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { Simulator } from './simulator.testing.ts'

// The simulator checks after each decision: at most one active Run (invariant 1), increasing epochs (invariant 3), unique
// Run names, no Apply without approval, nor with one that is used or expired, no Run of a suspended Stack, no finalizer removed while a Run is active, and that
// deciding again on the outcome changes nothing, and that the conditions are one of the states in api/stack-conditions.ts.

type Step =
  | { do: 'put'; name: string; change: Partial<StackSpec> }
  | { do: 'revision'; name: string; to: number }
  | { do: 'secret'; name: string; to: number }
  | { do: 'report'; name: string; phase: RunPhase; changes: number; reason: string; retryable: boolean }
  | { do: 'assign'; name: string }
  | { do: 'request'; name: string; type: string; id: number; options: string }
  | { do: 'approve'; name: string; digest: 'newest' | 'other'; isAgain: boolean }
  | { do: 'reject'; name: string; digest: 'newest' | 'other' | 'none' }
  | { do: 'require'; policy: ApprovalPolicy | undefined }
  | { do: 'destroySource'; name: string; source: 'Current' | '' }
  | { do: 'deleteRun'; name: string }
  | { do: 'delete'; name: string }
  | { do: 'advance'; ms: number }
  | { do: 'crash'; at: 'afterRun' | 'afterStatus' }
  | { do: 'pause' }

const name = fc.constantFrom('a', 'b', 'c')
const change: fc.Arbitrary<Partial<StackSpec>> = fc.oneof(
  fc.record({ approval: fc.constantFrom('Auto' as const, 'Manual' as const) }),
  fc.record({ drift: fc.constantFrom('Correct' as const, 'Report' as const, 'Off' as const) }),
  fc.record({ suspend: fc.boolean() }),
  fc.record({ deletion: fc.constantFrom('Destroy' as const, 'Orphan' as const) }),
  fc.record({ dependsOn: fc.uniqueArray(name, { maxLength: 2 }).map(names => names.map(other => ({ name: other }))) }),
  fc.record({ variablesFrom: fc.array(name, { maxLength: 1 }).map(names => names.map(other => ({ stackRef: { name: other } }))) }),
  fc.record({ retry: fc.record({ limit: fc.nat(3) }) }),
  fc.record({ historyLimit: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ interval: fc.constantFrom('1m', '1h') }),
  fc.record({ engine: fc.constantFrom('terraform' as const, 'command' as const) }),
)
const report: fc.Arbitrary<Step> = fc.record({
  do: fc.constant('report' as const),
  name,
  phase: fc.constantFrom(...runPhases.slice(1)),
  changes: fc.nat(1),
  reason: fc.constantFrom('ApplyFailed', 'PlanOutdated', 'EngineNotFound'),
  retryable: fc.boolean(),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: report },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('assign' as const), name }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('put' as const), name, change }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('revision' as const), name, to: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('secret' as const), name, to: fc.nat(2) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('request' as const),
      name,
      type: fc.constantFrom('plan', 'apply', 'refresh', 'plan-destroy', 'now'),
      id: fc.nat(3),
      options: fc.constantFrom('', '', ' {"targets":["a.b"]}', ' {"replace":["a.b"],"refresh":false}', ' {"targets":[]}'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('approve' as const),
      name,
      digest: fc.constantFrom('newest' as const, 'other' as const),
      isAgain: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('reject' as const),
      name,
      digest: fc.constantFrom('newest' as const, 'other' as const, 'none' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('require' as const), policy: fc.constantFrom('Required' as const, undefined) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('destroySource' as const), name, source: fc.constantFrom('Current' as const, '' as const) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('deleteRun' as const), name }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), name }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1_000, 10_000, 400_000, 4_000_000, 100_000_000) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('crash' as const), at: fc.constantFrom('afterRun' as const, 'afterStatus' as const) }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'pause' as const }) },
)

function play(simulator: Simulator, next: Step, outputs: { count: number }): void {
  const stack = 'name' in next ? simulator.stacks().find(({ metadata }) => metadata.name === next.name) : undefined
  if ('name' in next && !stack && next.do !== 'put') return
  switch (next.do) {
    case 'put':
      simulator.put(next.name, next.change)
      return
    case 'revision':
      simulator.setRevision(
        next.name,
        next.to === 0
          ? undefined
          : next.to === 1
            ? { error: { reason: 'SourceUnavailable', message: 'no answer', retryable: true } }
            : next.to === 4
              ? {
                  error: {
                    reason: 'SourceUnavailable',
                    message: 'no answer',
                    retryable: true,
                    nextMs: 0,
                    attempts: { count: 10, sinceMs: 0, lastMs: 0 },
                  },
                }
              : `r${next.to}`,
      )
      return
    case 'secret':
      simulator.setSecret(next.name, `s${next.to}`, [])
      return
    case 'report': {
      const active = simulator.activeRun(next.name)
      // A phase never goes back.
      if (!active || runPhases.indexOf(next.phase) <= runPhases.indexOf(phaseOf(active))) return
      // Engines whose plans are deterministic report equal digests.
      const digest = `sha256:${outputs.count % 3}`
      const results =
        next.phase === 'Succeeded'
          ? {
              plan: { digest, add: next.changes, change: 0, destroy: 0 },
              changed: next.changes > 0,
              outputsDigest: `o${outputs.count++ % 3}`,
            }
          : next.phase === 'Failed'
            ? { reason: next.reason, message: 'boom', retryable: next.retryable }
            : next.phase === 'Lost' && !next.retryable && ['Queued', 'Assigned'].includes(phaseOf(active))
              ? { reason: workerBusyReason }
              : {}
      simulator.report(next.name, next.phase, results)
      return
    }
    case 'assign':
      if (simulator.activeRun(next.name)) simulator.assign(next.name)
      return
    case 'request':
      simulator.annotate(next.name, { requestedRun: `${next.type}:${next.id}${next.options}` })
      return
    case 'approve':
      simulator.annotate(next.name, {
        approvedPlan: (next.digest === 'newest' && stack?.status?.plan?.digest) || 'sha256:other',
        ...(next.isAgain && { approvedAt: rfc3339(simulator.nowMs) }),
      })
      return
    case 'reject': {
      const digests = { newest: stack?.status?.plan?.digest ?? 'sha256:other', other: 'sha256:other', none: '' }
      simulator.annotate(next.name, { rejectedPlan: digests[next.digest] })
      return
    }
    case 'require':
      simulator.approvalPolicy = next.policy
      simulator.settle()
      return
    case 'destroySource':
      simulator.annotate(next.name, { destroySource: next.source })
      return
    case 'deleteRun': {
      const run = simulator.runsOf(next.name).findLast(one => isEnded(one) || !one.spec.workerName)
      if (run) simulator.deleteRun(run.metadata.name)
      return
    }
    case 'delete':
      simulator.delete(next.name)
      return
    case 'advance':
      simulator.advance(next.ms)
      return
    case 'crash':
      simulator.crash = next.at
      return
    case 'pause':
      simulator.isPaused = !simulator.isPaused
      simulator.settle()
      return
  }
}

test('the invariants hold for any sequence of events and crashes', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), steps => {
      const simulator = new Simulator()
      const outputs = { count: 0 }
      for (const next of steps) play(simulator, next, outputs)
    }),
    { numRuns: Number(process.env.OARLOCK_FUZZ_RUNS ?? 400) },
  )
})

test('without further events every Stack settles: in sync, stalled, awaiting approval or scheduled', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 40 }), steps => {
      const simulator = new Simulator()
      const outputs = { count: 0 }
      for (const next of steps) play(simulator, next, outputs)
      simulator.isPaused = false
      simulator.crash = undefined
      for (const stack of simulator.stacks()) simulator.setRevision(stack.metadata.name, 'last')
      for (let round = 0; round < 40; round++) {
        simulator.advance(1_000)
        for (const stack of simulator.stacks()) {
          if (simulator.activeRun(stack.metadata.name)) {
            simulator.report(stack.metadata.name, 'Succeeded', {
              plan: { digest: 'sha256:x', add: 0, change: 0, destroy: 0 },
              changed: false,
              outputsDigest: 'same',
            })
          }
        }
      }
      for (const { metadata, spec, status } of simulator.stacks()) {
        const condition = (type: string) => status?.conditions?.find(one => one.type === type)
        const ready = condition('Ready')
        const isSettled =
          ready?.status === 'True' ||
          condition('Stalled') !== undefined ||
          condition('AwaitingApproval') !== undefined ||
          status?.nextRunAt !== undefined ||
          spec.suspend === true ||
          ['DependencyNotFound', 'DependencyNotReady', 'DependentsExist'].includes(ready?.reason ?? '')
        assert.ok(isSettled, `${metadata.name} is ${JSON.stringify(status)}`)
      }
    }),
    { numRuns: Number(process.env.OARLOCK_FUZZ_RUNS ?? 150) },
  )
})
