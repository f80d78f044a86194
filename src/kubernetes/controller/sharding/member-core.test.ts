import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import type { LeaseBody } from '../../client/index.ts'
import type { KubeObject } from '../../object/index.ts'
import { ringAnnotation, ringLabel } from './lease-names.ts'
import { type MemberAction, MemberCore, type MemberCoreOptions } from './member-core.ts'
import { formatReport, noReport, reportAnnotation } from './member-report.ts'
import { parseRing } from './ring.ts'

const durations = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 }
const coreOf = (slots: number, more: Partial<MemberCoreOptions> = {}) =>
  new MemberCore({ name: 'op', namespace: 'a', slots, ...durations, processName: 'p', random: () => 0, wallMs: () => 0, ...more })

function leaseOf(name: string, holderIdentity: string, leaseDurationSeconds: number | null, report = noReport): KubeObject<LeaseBody> {
  const annotations = { [reportAnnotation]: formatReport(report) }
  const metadata = { name, namespace: 'a', uid: `u-${name}`, resourceVersion: '5', creationTimestamp: '', annotations }
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: { holderIdentity, leaseDurationSeconds } } as never
}

/** What it wants to write at this time, after a list that shows the same as before. */
function writesAt(core: MemberCore, nowMs: number, leases: KubeObject<LeaseBody>[]): (MemberAction & { kind: 'write' })[] {
  core.observeList(leases, '5', nowMs)
  return core.decide(nowMs).actions.filter(action => action.kind === 'write')
}

test('a Lease without a duration, or with a shorter one, is valid for as long as this process would believe in it', () => {
  for (const seconds of [null, 0, 1]) {
    const core = coreOf(1)
    const leases = [leaseOf('op-0', 'x.1', seconds)]
    for (let nowMs = 0; nowMs < 15_000; nowMs += 1_000) deepEqual(writesAt(core, nowMs, leases), [], `${seconds} s, at ${nowMs} ms`)
    deepEqual(
      writesAt(core, 15_000, leases).map(({ purpose }) => purpose),
      ['claim'],
    )
  }
})

test('Leases of slots that a ring cannot have, and versions that cannot be counted up, are ignored', () => {
  const core = coreOf(2)
  const leases = [
    leaseOf('op-75', 'x.1', 15),
    leaseOf('op-0', 'y.1', 15, { ...noReport, stopped: Number.MAX_SAFE_INTEGER, prepared: 1e300 }),
  ]
  const [claim] = writesAt(core, 0, leases)
  deepEqual(
    core.leases.map(({ metadata }) => metadata.name),
    ['op-0'],
  )
  equal(claim?.lease.metadata.name, 'op-1')
  core.done(claim!, { ...claim!.lease, metadata: { ...leaseOf('op-1', '', 15).metadata, resourceVersion: '6' } } as never, 0, 1)
  core.decide(1)
  const ring = core.decide(1_000).actions.find(action => action.kind === 'write' && action.purpose === 'ring') as typeof claim
  ok(ring, 'a ring')
  equal(parseRing(ring.lease.metadata.annotations?.[ringAnnotation])?.version, 1)
})

const purposesOf = (writes: readonly { purpose: string }[]) => writes.map(({ purpose }) => purpose)

test('a Lease that claims to last for years expires after ten minutes', () => {
  const core = coreOf(1)
  const leases = [leaseOf('op-0', 'x.1', 2 ** 31 - 1)]
  for (let nowMs = 0; nowMs < 600_000; nowMs += 1_000) deepEqual(writesAt(core, nowMs, leases), [], `at ${nowMs} ms`)
  deepEqual(purposesOf(writesAt(core, 600_000, leases)), ['claim'])
})

test('a slot whose holder is too long to be a process is free, and its Lease is written without what others added', () => {
  const lease = leaseOf('op-0', 'x'.repeat(301), 15)
  const foreign = {
    labels: { team: 'x' },
    annotations: { note: 'x'.repeat(1_000) },
    finalizers: ['example.com/keep'],
    ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }],
  }
  const core = coreOf(1)
  const [claim] = writesAt(core, 0, [{ ...lease, metadata: { ...lease.metadata, ...foreign } }])
  deepEqual(claim?.lease.metadata, {
    name: 'op-0',
    namespace: 'a',
    uid: 'u-op-0',
    resourceVersion: '5',
    labels: { [ringLabel]: 'op' },
    annotations: { [reportAnnotation]: formatReport(noReport) },
  })
})

test('a slot can be claimed although its transitions cannot be counted up', () => {
  const lease = leaseOf('op-0', '', 15)
  const core = coreOf(1)
  const [claim] = writesAt(core, 0, [{ ...lease, spec: { ...lease.spec, leaseTransitions: 2 ** 31 - 1 } }])
  equal(claim?.lease.spec?.leaseTransitions, 2 ** 31 - 1)
})

test('a member publishes its annotations with its Lease, beside the report, which they do not replace', () => {
  const core = coreOf(1, { annotations: () => ({ load: '1', [reportAnnotation]: 'no report' }) })
  const [claim] = writesAt(core, 0, [])
  deepEqual(claim?.lease.metadata.annotations, { load: '1', [reportAnnotation]: formatReport(noReport) })
})
