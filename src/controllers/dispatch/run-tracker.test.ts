import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Run, subjectOf, type Worker } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { epochMs, testRun, testWorker } from './objects.testing.ts'
import { RunQueue } from './queue/index.ts'
import { RunTracker } from './run-tracker.ts'

const hourMs = 3_600_000
const subject = subjectOf(testRun('r'))

/** An ended Run of ten minutes. Its namespace is a tenant of its own. */
function ended(namespace: string, endedMs: number): Run {
  const run = testRun(`${namespace}-1`, { namespace, worker: 'w', atMs: endedMs - 600_000 })
  return { ...run, status: { phase: 'Succeeded', finishedAt: rfc3339(epochMs + endedMs) } }
}

/** A tracker of a leader that starts at {@link epochMs} with these Runs. */
function trackerOf(runs: readonly Run[], worker?: Worker) {
  const queue = new RunQueue({ nowMs: epochMs })
  const tracker = new RunTracker({
    queue,
    workerCreatedMs: name => (name === worker?.metadata.name ? Date.parse(worker.metadata.creationTimestamp) : undefined),
    onLoad: () => undefined,
    onWorkerRuns: () => undefined,
    onStarted: () => undefined,
  })
  const observe = (run: Run, isInitial = false) => tracker.observe(run, { isInitial, nowMs: epochMs })
  for (const run of runs) observe(run, true)
  queue.tick(epochMs)
  return { queue, tracker, observe }
}

function usageMinutes({ queue }: { queue: RunQueue }): Record<string, number> {
  return Object.fromEntries([...queue.accounts()].map(account => [account.name, Math.round(queue.usageMs(account, epochMs) / 60_000)]))
}

test('a leader that starts restores recent usage from ended Runs, also when the first one ended weeks ago', () => {
  const started = trackerOf([ended('idle', -24 * 20 * hourMs), ended('busy', 0), ended('calm', -hourMs / 4)])
  assert.deepEqual(usageMinutes(started), { busy: 10, calm: 5 })
})

test('an ended Run is charged once, however often it changes', () => {
  const started = trackerOf([ended('busy', 0)])
  started.observe(ended('busy', 0))
  started.observe(ended('unknown', 0))
  assert.deepEqual(usageMinutes(started), { busy: 10 })
})

test('a time in the future is not charged', () => {
  const started = trackerOf([ended('ahead', 24 * 365 * hourMs), ended('busy', 0)])
  assert.deepEqual(usageMinutes(started), { busy: 10 })
  const run = testRun('later', { namespace: 'ahead', worker: 'w', atMs: 24 * 365 * hourMs })
  started.observe(run)
  assert.deepEqual(usageMinutes(started), { busy: 10, ahead: 1 })
  started.observe({ ...run, status: { phase: 'Succeeded', finishedAt: rfc3339(epochMs + 24 * 3_650 * hourMs) } })
  assert.deepEqual(usageMinutes(started), { busy: 10, ahead: 0 })
})

test('the total of a one-shot worker counts its own ended Runs, and not those of a previous worker of its name', () => {
  const current = trackerOf([ended('a', 0)], testWorker('w', { atMs: -hourMs }))
  assert.deepEqual(current.tracker.load('w'), { active: 0, total: 1 })
  const previous = trackerOf([ended('a', 0)], testWorker('w', { atMs: -60_000 }))
  assert.equal(previous.tracker.load('w'), undefined)
})

test('a Run whose assignment fails is queued again, and its Worker has its slot back', () => {
  const { tracker, queue, observe } = trackerOf([])
  tracker.subjectChanged(subject, 0, epochMs)
  observe(testRun('r'))
  assert.equal(queue.size, 1)
  queue.start({ key: 'ns/r', namespace: 'ns', pool: 'default', concurrencyKey: undefined, sinceMs: epochMs })
  tracker.assume(tracker.get('ns/r')!, 'w')
  assert.deepEqual([queue.size, queue.running, tracker.load('w')?.active], [0, 1, 1])
  tracker.settle('ns/r', epochMs)
  assert.deepEqual([queue.size, queue.running, tracker.load('w')], [1, 0, undefined])
})

test('a Run whose subject is unknown is not queued, and one whose subject is deleted leaves the queue', () => {
  const { tracker, queue, observe } = trackerOf([])
  observe(testRun('r'))
  assert.deepEqual([queue.size, [...tracker.toCleanUp()].length], [0, 1])
  tracker.subjectChanged(subject, 0, epochMs)
  assert.deepEqual([queue.size, [...tracker.toCleanUp()].length], [1, 0])
  tracker.subjectDeleted(subject, epochMs)
  assert.deepEqual([queue.size, [...tracker.toCleanUp()].length], [0, 1])
})

for (const { forged, run } of [
  { forged: 'from another namespace', run: testRun('forged', { namespace: 'other' }) },
  { forged: 'under another name', run: withStackName(testRun('forged'), 'other') },
]) {
  test(`a Run that refers to the UID of a Stack ${forged} is not queued, and does not affect the Runs of the Stack`, () => {
    const { tracker, queue, observe } = trackerOf([])
    tracker.subjectChanged(subject, 0, epochMs)
    observe(testRun('r'))
    observe(run)
    const toCleanUp = () => [...tracker.toCleanUp()].map(({ object }) => object.name)
    assert.deepEqual([queue.size, toCleanUp()], [1, ['forged']])
    tracker.subjectMissing(subjectOf(run), epochMs)
    assert.deepEqual([queue.size, toCleanUp()], [1, ['forged']])
  })
}

function withStackName(run: Run, name: string): Run {
  return { ...run, spec: { ...run.spec, stackRef: { ...run.spec.stackRef, name } } }
}
