import { deepEqual, equal } from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { nextRevision, revisionEpochMs } from '../../kubernetes/util/index.ts'
import type { WorkerStatusPatch } from './lease/registration.ts'
import { reportDelayMs, type WorkerActivity, WorkerStatusReporter } from './worker-status-reporter.ts'

function createReporter(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const written: WorkerStatusPatch[] = []
  const errors: unknown[] = []
  const worker = { activity: { runs: [], idleSinceMs: 0 } as WorkerActivity, isApiDown: false }
  const reporter = new WorkerStatusReporter(
    () => worker.activity,
    async status => {
      if (worker.isApiDown) throw new Error('the API server is unreachable')
      written.push(status)
    },
    error => errors.push(error),
  )
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms)
    await nextTurn()
  }
  return { reporter, written, errors, worker, pass }
}

test('changes within the delay are one write, with the newest activity', async t => {
  const { reporter, written, worker, pass } = createReporter(t)
  for (const run of ['apps/a-1', 'apps/b-1']) {
    worker.activity = { runs: [run], idleSinceMs: undefined }
    reporter.schedule()
  }
  await pass(reportDelayMs - 1)
  equal(written.length, 0)
  await pass(1)
  deepEqual(
    written.map(({ phase, runs, idleSince }) => [phase, runs, idleSince]),
    [['Busy', ['apps/b-1'], null]],
  )
})

test('nothing is written twice', async t => {
  const { reporter, written, pass } = createReporter(t)
  await reporter.report()
  await reporter.report()
  await pass(600_000)
  equal(written.length, 1)
})

test('a failed report is retried after delays that double, with the activity of that time', async t => {
  const { reporter, written, errors, worker, pass } = createReporter(t)
  worker.isApiDown = true
  reporter.schedule()
  await pass(reportDelayMs)
  deepEqual([written.length, errors.length], [0, 1])
  await pass(2_000)
  equal(errors.length, 2)
  worker.isApiDown = false
  worker.activity = { runs: ['apps/network-1'], idleSinceMs: undefined }
  await pass(2_000)
  equal(written.length, 0, 'the second delay is 4 s')
  await pass(2_000)
  deepEqual(
    written.map(({ runs }) => runs),
    [['apps/network-1']],
  )
})

test('a closed reporter writes nothing more, even if its last report failed', async t => {
  const { reporter, written, worker, pass } = createReporter(t)
  worker.isApiDown = true
  await reporter.report()
  await reporter.close()
  reporter.schedule()
  worker.isApiDown = false
  await pass(600_000)
  equal(written.length, 0)
})

test('a started Run is reported immediately only if a dispatcher of another partition could take its slot for a free one', async t => {
  const version = (partition: number) => String(nextRevision(0, revisionEpochMs + 1e10, partition))
  const [own, t1, t2] = [version(3), version(1), version(2)]
  const { reporter, written, worker, pass } = createReporter(t)
  const reported = async (runs: string[], runVersion?: string) => {
    worker.activity = { runs, idleSinceMs: runs.length === 0 ? 0 : undefined }
    if (runVersion === undefined) reporter.schedule()
    else reporter.started(runVersion, own)
    await pass(0)
    return written.splice(0).map(status => status.runs)
  }
  deepEqual(await reported(['x/1'], t1), [['x/1']], 'the first one')
  deepEqual(await reported([]), [])
  deepEqual(await reported(['x/2'], t1), [], 'the next one of the same partition: the status has a Run')
  await pass(reportDelayMs)
  deepEqual(
    written.splice(0).map(status => status.runs),
    [['x/2']],
  )
  deepEqual(await reported(['y/1'], t2), [['y/1']], 'one of another partition')
  await reported([])
  await pass(reportDelayMs)
  deepEqual(
    written.splice(0).map(status => status.runs),
    [[]],
  )
  deepEqual(await reported(['y/2'], t2), [['y/2']], 'one of the same partition: the status has no Run')
  deepEqual(await reported(['y/2', 'y/3'], t2), [['y/2', 'y/3']], 'a second slot')
})

test('a started Run in the partition of its worker is reported after the delay: dispatch counts Runs by their assignment', async t => {
  const version = String(nextRevision(0, revisionEpochMs + 1e10, 0))
  const { reporter, written, worker, pass } = createReporter(t)
  worker.activity = { runs: ['x/1'], idleSinceMs: undefined }
  reporter.started(version, version)
  await pass(reportDelayMs - 1)
  equal(written.length, 0)
  await pass(1)
  equal(written.length, 1)
})
