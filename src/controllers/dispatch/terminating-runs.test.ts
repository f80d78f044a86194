import { deepEqual } from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Run, RunStatus, Stack, StackStatus } from '../../api/index.ts'
import { assignedFinalizer, stackFinalizer } from '../../api/index.ts'
import { epochMs } from './objects.testing.ts'
import { RunQueue } from './queue/index.ts'
import { RunTracker } from './run-tracker.ts'
import { subjectChanged } from './shell/observe-objects.ts'

const deletionTimestamp = '2026-06-01T10:00:00Z'
const stackWith = (status: Partial<StackStatus> | undefined, metadata: Partial<Stack['metadata']> = {}) =>
  ({ metadata: { name: 'app', namespace: 'a', uid: 'u', finalizers: [stackFinalizer], ...metadata }, status }) as Stack
const runIn = (phase: RunStatus['phase'], metadata: Partial<Run['metadata']> = { deletionTimestamp }) =>
  ({
    metadata: {
      name: 'app-u-2',
      namespace: 'a',
      uid: 'r',
      finalizers: [assignedFinalizer],
      creationTimestamp: deletionTimestamp,
      ...metadata,
    },
    spec: { epoch: 2, stackRef: { name: 'app', uid: 'u', generation: 1 }, stack: { source: {} }, pool: 'default' },
    status: { phase },
  }) as Run
const lastRun = (phase: string) => ({ name: 'app-u-2', type: 'Apply', phase, reason: 'NewGeneration' })

function trackerOf(stack: Stack | undefined) {
  const tracker = new RunTracker({
    queue: new RunQueue({ nowMs: epochMs }),
    workerCreatedMs: () => undefined,
    onLoad: () => undefined,
    onWorkerRuns: () => undefined,
    onStarted: () => undefined,
  })
  const observeStack = (object: Stack) => {
    const { subject, recordedEpoch } = subjectChanged(object)
    return tracker.subjectChanged(subject, recordedEpoch, epochMs)
  }
  if (stack) observeStack(stack)
  return { tracker, observeStack, releasable: () => [...tracker.releasable()].map(({ object }) => object.name) }
}

describe('the finalizer of a Run', () => {
  for (const { name, stack, run, isKept } of [
    { name: 'whose number is not in the status', stack: stackWith({ lastRunNumber: 1 }), run: runIn('Succeeded'), isKept: true },
    { name: 'of a Stack without a status', stack: stackWith(undefined), run: runIn('Lost'), isKept: true },
    {
      name: 'whose end is not in the status',
      stack: stackWith({ lastRunNumber: 2, lastRun: lastRun('Applying') }),
      run: runIn('Succeeded'),
      isKept: true,
    },
    {
      name: 'whose end is in the status',
      stack: stackWith({ lastRunNumber: 2, lastRun: lastRun('Succeeded') }),
      run: runIn('Succeeded'),
      isKept: false,
    },
    {
      name: 'before the last one',
      stack: stackWith({ lastRunNumber: 3, lastRun: lastRun('Applying') }),
      run: runIn('Succeeded'),
      isKept: false,
    },
    {
      name: 'that has not ended',
      stack: stackWith({ lastRunNumber: 2, lastRun: lastRun('Succeeded') }),
      run: runIn('Applying'),
      isKept: true,
    },
    {
      name: 'that is not being deleted',
      stack: stackWith({ lastRunNumber: 2, lastRun: lastRun('Succeeded') }),
      run: runIn('Succeeded', {}),
      isKept: true,
    },
    { name: 'of a deleted Stack', stack: undefined, run: runIn('Succeeded'), isKept: false },
    { name: 'of a previous Stack of the same name', stack: stackWith({}, { uid: 'v' }), run: runIn('Succeeded'), isKept: false },
    {
      name: 'of a Stack that only a finalizer of others keeps',
      stack: stackWith({ lastRunNumber: 1 }, { deletionTimestamp, finalizers: ['example.com/keep'] }),
      run: runIn('Succeeded'),
      isKept: false,
    },
  ]) {
    test(`${name} is ${isKept ? 'kept' : 'removed'}`, () => {
      const { tracker, releasable } = trackerOf(stack)
      tracker.observe(run, { nowMs: epochMs })
      deepEqual(releasable(), isKept ? [] : ['app-u-2'])
    })
  }

  for (const { event, change } of [
    {
      event: 'its Stack has recorded its end',
      change: ({ observeStack }: ReturnType<typeof trackerOf>) =>
        observeStack(stackWith({ lastRunNumber: 2, lastRun: lastRun('Succeeded') })),
    },
    {
      event: 'its Stack is deleted',
      change: ({ tracker }: ReturnType<typeof trackerOf>) => tracker.subjectDeleted(subjectChanged(stackWith({})).subject, epochMs),
    },
  ]) {
    test(`is removed once when ${event}`, () => {
      const fixture = trackerOf(stackWith({ lastRunNumber: 1 }))
      const { tracker, observeStack, releasable } = fixture
      tracker.observe(runIn('Succeeded'), { nowMs: epochMs })
      deepEqual([observeStack(stackWith({ lastRunNumber: 1 })), releasable()], [false, []])
      deepEqual([change(fixture), releasable()], [true, ['app-u-2']])
      tracker.released([...tracker.releasable()][0]!.object)
      tracker.observe(runIn('Succeeded'), { nowMs: epochMs })
      deepEqual(releasable(), [])
    })
  }
})
