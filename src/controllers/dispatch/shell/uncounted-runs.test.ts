import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run, RunStatus, Stack, StackStatus } from '../../../api/index.ts'
import { UncountedRuns } from './uncounted-runs.ts'

const deletionTimestamp = '2026-06-01T10:00:00Z'
const stackWith = (status: Partial<StackStatus> | undefined, metadata: Partial<Stack['metadata']> = {}) =>
  ({ metadata: { name: 'app', namespace: 'a', uid: 'u', finalizers: ['oarlock.dev/finalizer'], ...metadata }, status }) as Stack
const runIn = (phase: RunStatus['phase'], metadata: Partial<Run['metadata']> = { deletionTimestamp }) =>
  ({
    metadata: { name: 'app-u-2', namespace: 'a', ...metadata },
    spec: { epoch: 2, stackRef: { name: 'app', uid: 'u', generation: 1 } },
    status: { phase },
  }) as Run
const lastRun = (phase: string) => ({ name: 'app-u-2', type: 'Apply', phase, reason: 'NewGeneration' })

const cases: { name: string; stack: Stack | undefined; run: Run; want: boolean }[] = [
  { name: 'a Run whose number is not in the status', stack: stackWith({ lastRunNumber: 1 }), run: runIn('Succeeded'), want: true },
  { name: 'a Run of a Stack without a status', stack: stackWith(undefined), run: runIn('Lost'), want: true },
  {
    name: 'a Run whose end is not in the status',
    stack: stackWith({ lastRunNumber: 2, lastRun: lastRun('Applying') }),
    run: runIn('Succeeded'),
    want: true,
  },
  {
    name: 'a Run whose end is in the status',
    stack: stackWith({ lastRunNumber: 2, lastRun: lastRun('Succeeded') }),
    run: runIn('Succeeded'),
    want: false,
  },
  { name: 'an older Run', stack: stackWith({ lastRunNumber: 3, lastRun: lastRun('Applying') }), run: runIn('Succeeded'), want: false },
  { name: 'a Run that has not ended', stack: stackWith({ lastRunNumber: 1 }), run: runIn('Applying'), want: false },
  { name: 'a Run that is not deleted', stack: stackWith({ lastRunNumber: 1 }), run: runIn('Succeeded', {}), want: false },
  { name: 'a Run of a deleted Stack', stack: undefined, run: runIn('Succeeded'), want: false },
  { name: 'a Run of a previous Stack of the same name', stack: stackWith({}, { uid: 'v' }), run: runIn('Succeeded'), want: false },
  {
    name: 'a Run of a Stack that only a finalizer of others keeps',
    stack: stackWith({ lastRunNumber: 1 }, { deletionTimestamp, finalizers: ['example.com/keep'] }),
    run: runIn('Succeeded'),
    want: false,
  },
]

for (const { name, stack, run, want } of cases) {
  test(`${want ? 'keeps' : 'does not keep'} ${name}`, () => {
    equal(new UncountedRuns({ get: key => (key === 'a/app' ? stack : undefined) }).check(run), want)
  })
}

test('returns a kept Run once', () => {
  const uncounted = new UncountedRuns({ get: () => stackWith({}) })
  uncounted.check(runIn('Succeeded'))
  deepEqual([...uncounted.takeOf('u')], ['a/app-u-2'])
  equal(uncounted.size, 0)
})
