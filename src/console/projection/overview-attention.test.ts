import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { StackRow } from '../protocol/index.ts'
import { overviewOf } from './overview.ts'

const nowMs = Date.parse('2026-06-01T10:00:00Z')
const minutesAgo = (minutes: number) => nowMs - minutes * 60_000
const plan = { add: 0, change: 0, destroy: 2, digest: 'sha256:ab', runName: 'one-2' }
const row = (state: StackRow['state'], more: Partial<StackRow> = {}): StackRow => ({
  ...{ key: 'a/one', namespace: 'a', name: 'one', engine: 'terraform', pool: 'default', state, reason: state, message: 'why' },
  ...{ suspended: false, labels: {}, createdMs: minutesAgo(90), sinceMs: minutesAgo(5), ...more },
})

for (const [name, stack, want] of [
  ['a Stack that is ready does not', row('Ready'), undefined],
  ['a failed Stack does', row('Failed'), 'Failed'],
  ['a Stack whose plan awaits approval does', row('AwaitingApproval', { plan }), 'AwaitingApproval'],
  ['work in progress does not', row('Working'), undefined],
  ['work that has lasted for more than an hour does', row('Working', { sinceMs: minutesAgo(61) }), 'Stuck'],
  ['a deletion in progress does not', row('Deleting'), undefined],
  ['a deletion whose plan awaits approval does immediately', row('Deleting', { plan }), 'AwaitingApproval'],
  ['a deletion that waits for a change by a user does immediately', row('Deleting', { isStalled: true }), 'Failed'],
] as const)
  test(`what needs attention: ${name}`, () => {
    const { attention } = overviewOf({ stacks: [stack], runs: [], allRuns: [], workers: [], nowMs })
    deepEqual(
      attention.map(({ kind }) => kind),
      want === undefined ? [] : [want],
    )
  })
