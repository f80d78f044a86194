import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../object/index.ts'
import { fullReason, type HealthReason, publicReason } from './health-checks.ts'

const forbidden = new StatusError('Forbidden', 'leases "w1" is forbidden: User "eve" cannot get leases')
const rows: readonly (readonly [name: string, reason: HealthReason, full: string, shown: string])[] = [
  ['a text', 'the manager is stopped', 'the manager is stopped', 'the manager is stopped'],
  ['an error of a server', { reason: 'it fails', detail: forbidden }, `it fails: ${forbidden.message}`, 'it fails (Forbidden)'],
  ['another error', { reason: 'it fails', detail: new Error('connect /data/x') }, 'it fails: connect /data/x', 'it fails'],
  ['a detail', { reason: 'it is held', detail: 'host-1_42' }, 'it is held: host-1_42', 'it is held'],
  [
    'a server whose reason is a text of its own',
    { reason: 'it fails', detail: new StatusError('user eve', 'no') },
    'it fails: no',
    'it fails',
  ],
]
for (const [name, reason, full, shown] of rows)
  test(`a failed check shows its reason without the detail: ${name}`, () => {
    equal(fullReason(reason), full)
    equal(publicReason(reason), shown)
  })
