import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '../../../kubernetes/object/index.ts'
import { testTenant } from '../objects.testing.ts'
import { RunQueue, TenantIndex } from '../queue/index.ts'
import { TenantReports } from './tenant-reports.ts'

const tenant = testTenant('acme', { namespaces: ['a', 'b', 'c'] })
const queue = new RunQueue({ nowMs: 0 })

/** The numbers of namespaces that are reported at this time. */
function reporter() {
  const reports = new TenantReports()
  const at = (nowMs: number, namespaces: readonly string[], { isHere = true, isPending = false } = {}) => {
    const tenantIndex = new TenantIndex(
      [tenant],
      namespaces.map(name => ({ metadata: { name } }) as KubeObject<unknown>),
    )
    const input = { tenants: new Map([['acme', tenant]]), tenantIndex, queue, isHere: () => isHere, isPending: () => isPending, nowMs }
    const { actions, requeueAfterMs } = reports.decide(input)
    return { reported: actions.flatMap(action => (action.kind === 'ReportTenant' ? [action.counts.namespaces] : [])), requeueAfterMs }
  }
  return { reports, at }
}
const nothing = { reported: [], requeueAfterMs: Number.POSITIVE_INFINITY }

test('the first counts are reported immediately, a change 3 seconds later, and what does not change never', () => {
  const { at } = reporter()
  deepEqual(at(0, []), { reported: [0], requeueAfterMs: Number.POSITIVE_INFINITY })
  deepEqual(at(10_000, []), nothing)
  deepEqual(at(20_000, ['a']), { reported: [], requeueAfterMs: 3_000 })
  deepEqual(at(20_400, ['a', 'b']), { reported: [], requeueAfterMs: 600 })
  deepEqual(at(23_000, ['a', 'b']), { reported: [2], requeueAfterMs: Number.POSITIVE_INFINITY })
  deepEqual(at(90_000, ['a', 'b']), nothing)
})

test('counts that were not written are reported again', () => {
  for (const outcome of ['Failed', 'Rejected'] as const) {
    const { reports, at } = reporter()
    at(0, ['a'])
    reports.writeSettled('acme', outcome)
    deepEqual(at(1_000, ['a'], { isPending: true }).reported, [])
    deepEqual(at(2_000, ['a']).reported, [1])
    reports.writeSettled('acme', 'Written')
    deepEqual(at(3_000, ['a']), nothing)
  }
})

test('a Tenant of another partition is not reported, and one that comes back is', () => {
  const { at } = reporter()
  deepEqual(at(0, ['a'], { isHere: false }), nothing)
  deepEqual(at(1_000, ['a']).reported, [1])
  deepEqual(at(2_000, ['a'], { isHere: false }), nothing)
  deepEqual(at(3_000, ['a']).reported, [1])
})
