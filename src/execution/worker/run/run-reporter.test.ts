import { deepEqual, equal, rejects } from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { PendingOperations, Run, RunStatus } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { coalesceDelayMs, firstReportDelayMs, progressIntervalMs, RunReporter } from './run-reporter.ts'

function createReporter(t: TestContext, status: Partial<RunStatus> | undefined = undefined) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let run = { metadata: { name: 'app-1', uid: 'u', resourceVersion: '1' }, spec: { workerName: 'w' }, status } as unknown as Run
  const written: Partial<RunStatus>[] = []
  const runs = {
    patchStatus: async (_: string, patch: { status: Partial<RunStatus> }) => {
      written.push(patch.status)
      const resourceVersion = String(Number(run.metadata.resourceVersion) + 1)
      run = { ...run, metadata: { ...run.metadata, resourceVersion }, status: { ...run.status, ...patch.status } as RunStatus }
      return run
    },
  }
  const reporter = new RunReporter({ client: { resource: () => runs } as unknown as Client, run, workerName: 'w', mayWrite: () => true })
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms)
    for (let turn = 0; turn < 3; turn++) await nextTurn()
  }
  const phases = () => written.map(({ phase }) => phase)
  return { reporter, written, phases, pass, current: () => run }
}

test('a quick Run costs one write, with everything that was reported', async t => {
  const { reporter, written, pass, current } = createReporter(t)
  const started = reporter.reportStarted()
  const planning = reporter.reportPhaseSoon({ phase: 'Planning' })
  reporter.reportProgress({ done: 1, total: 2 } as NonNullable<RunStatus['progress']>)
  await pass(firstReportDelayMs - 1)
  deepEqual(written, [])
  await reporter.reportPhase({ phase: 'Succeeded', changed: true })
  await Promise.all([started, planning])
  await pass(60_000)
  deepEqual(
    written.map(({ phase, changed }) => [phase, changed]),
    [['Succeeded', true]],
  )
  equal(typeof current().status?.startedAt, 'string')
})

test('the phase of a longer Run is written after 2 s, however many phases it had until then, and the next one soon', async t => {
  const { reporter, phases, pass } = createReporter(t)
  void reporter.reportStarted()
  await pass(firstReportDelayMs - 100)
  void reporter.reportPhaseSoon({ phase: 'Planning' })
  await pass(100)
  deepEqual(phases(), ['Planning'])
  void reporter.reportPhaseSoon({ phase: 'Applying' })
  await pass(coalesceDelayMs)
  deepEqual(phases(), ['Planning', 'Applying'])
})

test('a pending reason, which is no longer true, is removed soon', async t => {
  const { reporter, written, pass } = createReporter(t, { phase: 'Queued', reason: 'PoolLimit', queuePosition: 3 })
  void reporter.reportStarted()
  await pass(coalesceDelayMs)
  deepEqual(
    written.map(({ phase, reason, queuePosition }) => [phase, reason, queuePosition]),
    [['Preparing', null, null]],
  )
})

test('a closed reporter writes no pending report', async t => {
  const { reporter, written, pass } = createReporter(t)
  void reporter.reportStarted()
  reporter.close()
  await pass(60_000)
  deepEqual(written, [])
})

test('a pending report is rejected once the Run belongs to another worker', async t => {
  const { reporter, written, pass, current } = createReporter(t)
  const started = reporter.reportStarted()
  const rejected = rejects(started, { cause: { kind: 'OwnershipLost', detail: 'it is assigned to worker other' } })
  reporter.observe({
    ...current(),
    metadata: { ...current().metadata, resourceVersion: '2' },
    spec: { ...current().spec, workerName: 'other' },
  })
  await pass(firstReportDelayMs)
  await rejected
  deepEqual(written, [])
})

const creating: PendingOperations = { count: 1, operations: [{ type: 'creating', urn: 'aws_instance.a' }] }

test('creations in progress are written soon, also before the first phase is due, and removed when they have ended', async t => {
  const { reporter, written, pass } = createReporter(t)
  void reporter.reportStarted()
  void reporter.reportPhaseSoon({ phase: 'Applying' })
  reporter.reportProgress({ done: 0, total: 2 }, creating)
  await pass(progressIntervalMs)
  deepEqual(
    written.map(({ phase, pendingOperations }) => [phase, pendingOperations]),
    [['Applying', creating]],
  )
  reporter.reportProgress({ done: 1, total: 2 })
  await pass(progressIntervalMs)
  deepEqual(written[1], { progress: { done: 1, total: 2 }, pendingOperations: null })
})

test('the result removes creations that were reported, unless it lists them', async t => {
  for (const own of [undefined, creating]) {
    const { reporter, written, pass } = createReporter(t)
    reporter.reportProgress({ done: 0, total: 1 }, creating)
    await pass(progressIntervalMs)
    await reporter.reportPhase({ phase: 'Failed', ...(own && { pendingOperations: own }) })
    deepEqual(
      written.map(({ pendingOperations }) => pendingOperations),
      [creating, own ?? null],
    )
    t.mock.timers.reset()
  }
})
