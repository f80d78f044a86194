import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Condition, KubeObject } from '../object/index.ts'
import { kstatusOf, withProgress } from './index.ts'

type Status = { conditions?: Condition[]; observedGeneration?: number; size?: number }

const metadata = { name: 'a', uid: 'u', resourceVersion: '1', generation: 3, creationTimestamp: '2026-01-01T00:00:00Z' }
const objectWith = (status: Status, more: object = {}) =>
  ({ apiVersion: 'v1', kind: 'X', metadata: { ...metadata, ...more }, status }) as unknown as KubeObject<{ status?: Status }>

test('withProgress sets the conditions that kstatus reads, and exceptional ones only while they are true', () => {
  const at = (ms: number, before: Status, state: 'ready' | 'reconciling' | 'stalled') =>
    withProgress({ metadata }, before, { state, reason: 'Because', message: 'it is so' }, ms)
  const first = at(0, { size: 4 }, 'reconciling')
  const reported = ({ conditions = [] }: Status) =>
    conditions.map(({ type, status, lastTransitionTime }) => `${type}=${status} ${lastTransitionTime.slice(11, 19)}`)
  deepEqual(reported(first), ['Ready=False 00:00:00', 'Reconciling=True 00:00:00'])
  deepEqual([first.size, first.observedGeneration], [4, 3])
  deepEqual(at(5_000, first, 'reconciling'), first, 'nothing changed, so nothing is to be written')
  const stalled = at(5_000, first, 'stalled')
  deepEqual(reported(stalled), ['Ready=False 00:00:00', 'Stalled=True 00:00:05'])
  deepEqual(reported(at(9_000, stalled, 'ready')), ['Ready=True 00:00:09'])
})

for (const { name, object, want } of [
  { name: 'no status', object: objectWith({}), want: 'Current' },
  { name: 'a generation that is not observed', object: objectWith({ observedGeneration: 2 }), want: 'InProgress' },
  { name: 'ready', object: objectWith(withProgress({ metadata }, {}, { state: 'ready', reason: 'A', message: 'b' }, 0)), want: 'Current' },
  {
    name: 'reconciling',
    object: objectWith(withProgress({ metadata }, {}, { state: 'reconciling', reason: 'A', message: 'b' }, 0)),
    want: 'InProgress',
  },
  {
    name: 'stalled',
    object: objectWith(withProgress({ metadata }, {}, { state: 'stalled', reason: 'A', message: 'b' }, 0)),
    want: 'Failed',
  },
  { name: 'being deleted', object: objectWith({}, { deletionTimestamp: '2026-01-01T00:00:00Z' }), want: 'Terminating' },
  { name: 'conditions that are not a list', object: objectWith({ conditions: 'x' as never }), want: 'Current' },
]) {
  test(`kstatus of an object: ${name}`, () => equal(kstatusOf(object).status, want))
}
