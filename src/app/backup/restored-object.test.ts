import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run, Stack } from '../../api/index.ts'
import { maxEpoch } from '../../stores/state/index.ts'
import { restoredObject } from './restored-object.ts'

const nowMs = Date.parse('2026-06-01T10:00:00Z')
const facts = { nowMs, backupAt: '2026-06-01T09:00:00Z', lastEpochs: new Map([['uid', 1_000_040]]) }

const stack = (uid: string, status: object, annotations: Record<string, string> = {}) =>
  ({ metadata: { name: 'a', namespace: 'team', uid, annotations }, spec: {}, status }) as unknown as Stack
const run = (spec: object, status?: object) => ({ metadata: { name: 'a-1', namespace: 'team' }, spec, status }) as unknown as Run
const restored = <T>(resource: string, object: unknown): T => restoredObject(resource, object as Run, facts) as T

test('a Stack waits for its review, and approvals, plans and requests are void', () => {
  const given = {
    'oarlock.dev/approved-plan': 'sha256:1',
    'oarlock.dev/approved-by': 'me',
    'oarlock.dev/requested-run': 'apply:1',
    team: 'x',
  }
  const status = { lastRunNumber: 7, plan: { digest: 'sha256:1' }, approval: { digest: 'sha256:1' }, resources: 3 }
  const { metadata, status: after } = restored<Stack>('stacks.oarlock.dev', stack('other', status, given))
  deepEqual(metadata.annotations, { team: 'x' })
  deepEqual(after, {
    lastRunNumber: 7,
    resources: 3,
    minRunNumber: 1_000_009,
    restored: { at: '2026-06-01T10:00:00Z', backupAt: '2026-06-01T09:00:00Z' },
  })
})

for (const { name, uid, status, expected } of [
  { name: 'above the last Run of the Stack', uid: 'other', status: { lastRunNumber: 41 }, expected: 1_000_043 },
  { name: 'above what the stores exclude', uid: 'uid', status: { lastRunNumber: 3 }, expected: 1_000_041 },
  {
    name: 'above the number of an earlier restore',
    uid: 'other',
    status: { lastRunNumber: 3, minRunNumber: 1_000_005 },
    expected: 2_000_006,
  },
  { name: 'without a status', uid: 'other', status: undefined, expected: 1_000_002 },
  {
    name: 'near the highest epoch, half of the remaining ones',
    uid: 'other',
    status: { lastRunNumber: maxEpoch - 101 },
    expected: maxEpoch - 49,
  },
  { name: 'that never exceeds the highest epoch', uid: 'other', status: { lastRunNumber: maxEpoch - 1 }, expected: maxEpoch },
]) {
  test(`the next Run of a Stack has a number ${name}`, () => {
    equal(restored<Stack>('stacks.oarlock.dev', stack(uid, status as object)).status?.minRunNumber, expected)
  })
}

test('a Run without a worker is dropped, one with a worker is Lost, one that has ended is unchanged', () => {
  equal(restored('runs.oarlock.dev', run({}, { phase: 'Queued' })), undefined)
  const { status } = restored<Run>('runs.oarlock.dev', run({ workerName: 'w' }, { phase: 'Applying', startedAt: 'x' }))
  deepEqual(status, {
    phase: 'Lost',
    startedAt: 'x',
    reason: 'RestoredFromBackup',
    message: 'the Run was active when the backup was created',
    finishedAt: '2026-06-01T10:00:00Z',
  })
  const ended = run({ workerName: 'w' }, { phase: 'Succeeded' })
  equal(restored('runs.oarlock.dev', ended), ended)
})

test('join tokens and credentials of workers are dropped, other Secrets are unchanged', () => {
  const secret = (type: string) => ({ metadata: { name: 's', namespace: 'oarlock-system' }, type })
  equal(restored('secrets', secret('oarlock.dev/join-token')), undefined)
  equal(restored('secrets', secret('oarlock.dev/worker-credential')), undefined)
  const other = secret('Opaque')
  equal(restored('secrets', other), other)
})
