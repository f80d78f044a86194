import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { LeaseBody } from '../client/index.ts'
import type { KubeObject } from '../object/index.ts'
import { decideElection, nextLeaseSpec, observeLease } from './decide-election.ts'

const lease = (spec: LeaseBody['spec']): KubeObject<LeaseBody> => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'ctl', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  spec,
})
const held = { holder: 'one', record: 'r', durationMs: 15_000, seenMs: 1_000 }

for (const { name, observation, nowMs, want } of [
  { name: 'creates a missing Lease', observation: undefined, nowMs: 0, want: { kind: 'create' } },
  { name: 'renews its own Lease', observation: { ...held, holder: 'me' }, nowMs: 99_999, want: { kind: 'renew' } },
  { name: 'takes over a released Lease immediately', observation: { ...held, holder: '' }, nowMs: 1_001, want: { kind: 'take-over' } },
  {
    name: 'waits until the duration of a held Lease has elapsed on the local clock',
    observation: held,
    nowMs: 15_999,
    want: { kind: 'wait', untilMs: 16_000 },
  },
  {
    name: 'invariant 2: takes over a Lease whose last observed change is a lease duration ago',
    observation: held,
    nowMs: 16_000,
    want: { kind: 'take-over' },
  },
]) {
  test(name, () => deepEqual(decideElection(observation, 'me', nowMs), want))
}

test('an observation keeps its instant until the record changes, regardless of the times in the record', () => {
  const spec = { holderIdentity: 'one', leaseDurationSeconds: 15, renewTime: '1999-01-01T00:00:00.000000Z' }
  const first = observeLease(undefined, lease(spec), 1_000)
  deepEqual([first.holder, first.durationMs, first.seenMs], ['one', 15_000, 1_000])
  deepEqual(observeLease(first, lease(spec), 9_000), first)
  deepEqual(observeLease(first, lease({ ...spec, renewTime: '1999-01-01T00:00:02.000000Z' }), 9_000).seenMs, 9_000)
  deepEqual(observeLease(undefined, lease(undefined), 5), {
    holder: '',
    record: first.record.replace(/.*/, '["u","",null,null,null,0]'),
    durationMs: 0,
    seenMs: 5,
  })
})

test('a renewal keeps the acquire time, a takeover increments the transitions', () => {
  const before = { holderIdentity: 'me', acquireTime: 'then', leaseTransitions: 3 }
  const now = '1970-01-01T00:00:00.000000Z'
  const common = { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: now }
  const next = (spec: LeaseBody['spec']) => nextLeaseSpec(spec, { identity: 'me', durationMs: 15_000, wallMs: 0 })
  deepEqual(next(before), { ...common, acquireTime: 'then', leaseTransitions: 3 })
  deepEqual(next({ ...before, holderIdentity: 'one' }), { ...common, acquireTime: now, leaseTransitions: 4 })
  deepEqual(next(undefined), { ...common, acquireTime: now, leaseTransitions: 0 })
})
