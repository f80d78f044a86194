import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { followStartedProcesses } from '../../../../test/support/started-processes.ts'
import { LimitExceededError } from '../../../kubernetes/util/index.ts'
import { largeState } from './large-state.testing.ts'
import { type RunTask, TaskRunner } from './task-runner.ts'

const { signal } = new AbortController()
const ann = { user: 'ann', signal }
const [slowOld, slowNew] = ['old', 'new'].map(value => largeState(150_000, value)) as [string, string]
const size = slowOld.length + slowNew.length
const slowTask = (run: RunTask) => run('diffStates', slowOld, slowNew, { to: 2, withValues: true })
const quickTask = (run: RunTask) => run('resourcesIn', largeState(1, 'x'), 10)

function open(t: TestContext, limits: { timeoutMs?: number; maxHeapMb?: number } = {}): TaskRunner {
  const runner = new TaskRunner({
    ...{ name: 'test', maxInlineSize: 1_000, timeoutMs: 60_000, maxHeapMb: 256, ...limits },
    ...{ subject: 'reading these states', remedy: 'use "oarlock state pull"' },
  })
  t.after(() => runner.close())
  return runner
}

/** Resolves with the process of a runner when it has started. */
async function startedProcess(t: TestContext): Promise<ChildProcess> {
  const processes = followStartedProcesses()
  t.after(processes.stop)
  return await eventually(() => processes.running()[0], 'the process')
}

test('a large input is processed in a process, with the result of the same task here', async t => {
  const runner = open(t)
  const here = await runner.run(ann, 1_000, slowTask)
  const started = startedProcess(t)
  const before = process.threadCpuUsage()
  deepEqual(Buffer.from(await runner.run(ann, size, slowTask)), Buffer.from(here))
  const used = process.threadCpuUsage(before)
  await started
  const inline = process.threadCpuUsage()
  await runner.run(ann, 1_000, slowTask)
  const spent = process.threadCpuUsage(inline)
  ok(used.user < spent.user / 2, `${used.user} µs, and ${spent.user} µs without a process`)
})

test('a task that takes too long or too much memory names the limit, and the next one is performed', async t => {
  for (const [limits, message] of [
    [{ timeoutMs: 100 }, 'reading these states takes more than 0.1 s: use "oarlock state pull"'],
    [{ maxHeapMb: 24 }, 'reading these states takes more than 24 MB of memory: use "oarlock state pull"'],
  ] as const) {
    const runner = open(t, limits)
    await rejects(runner.run(ann, size, slowTask), { code: 413, message })
    equal((await runner.run(ann, 10, quickTask)).total, 1)
  }
})

test('a state that nests too deeply is rejected before it is parsed, also in a process', async t => {
  const runner = open(t)
  const levels = (count: number) => `{"x":${'['.repeat(count)}${']'.repeat(count)}}`
  const message = 'the state nests deeper than 500 levels: use "oarlock state pull"'
  for (const size of [1, 10_000]) {
    const compare = (state: string) => runner.run(ann, size, run => run('diffStates', '', state, { to: 1, withValues: false }))
    await compare(levels(499))
    await rejects(compare(levels(500)), { code: 413, message })
    await rejects(
      runner.run(ann, size, run => run('resourcesIn', levels(8_000_000), 10)),
      { code: 413, message },
    )
    await rejects(
      runner.run(ann, size, run => run('withNewerSerial', levels(500), '{}')),
      { code: 413, message },
    )
  }
})

test('an error of a task is the one that it throws here', async t => {
  const runner = open(t)
  for (const length of [1, 10_000])
    await rejects(
      runner.run(ann, length, run => run('resourcesIn', 'no JSON', 10)),
      { name: 'StatusError', code: 422 },
    )
})

test('large inputs are read one after another, users take turns, and a small one does not wait', async t => {
  const runner = open(t)
  const order: string[] = []
  const first = Promise.withResolvers<void>()
  const call = (user: string, name: string) =>
    runner.run({ user, signal }, 10_000, async run => {
      order.push(name)
      await first.promise
      await quickTask(run)
    })
  const calls = [call('ann', 'ann 1'), call('ann', 'ann 2'), call('ann', 'ann 3'), call('bob', 'bob 1')]
  await runner.run(ann, 10, quickTask)
  deepEqual(order, ['ann 1'])
  first.resolve()
  await Promise.all(calls)
  deepEqual(order, ['ann 1', 'ann 2', 'bob 1', 'ann 3'])
})

test('calls beyond the limit of a user are rejected', async t => {
  const runner = open(t)
  const all = await Promise.allSettled(Array.from({ length: 12 }, () => runner.run(ann, 10_000, quickTask)))
  const rejected = all.filter(result => result.status === 'rejected')
  equal(rejected.length, 3)
  ok(rejected.every(({ reason }) => reason instanceof LimitExceededError))
})

test('a call whose request is cut ends, running or waiting, and reads nothing', async t => {
  const runner = open(t)
  const cut = new AbortController()
  const caller = { user: 'ann', signal: cut.signal }
  const started = startedProcess(t)
  let reads = 0
  const running = runner.run(caller, size, slowTask)
  const waiting = runner.run(caller, size, async () => reads++)
  const other = runner.run({ user: 'bob', signal }, size, quickTask)
  const ended = Promise.all([rejects(running, { name: 'AbortError' }), rejects(waiting, { name: 'AbortError' })])
  const child = await started
  cut.abort()
  await ended
  equal(child.signalCode, 'SIGKILL')
  equal((await other).total, 1)
  equal(reads, 0)
})

test('closing ends the process and all calls', async t => {
  const runner = open(t)
  const started = startedProcess(t)
  const calls = Promise.all(Array.from({ length: 3 }, () => rejects(runner.run(ann, size, slowTask), { code: 503 })))
  const child = await started
  await runner.close()
  equal(child.signalCode, 'SIGKILL')
  await calls
  await rejects(runner.run(ann, size, slowTask), { code: 503 })
})
