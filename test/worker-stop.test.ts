/** How a worker stops a Run: cancel, timeout, drain, and a Run or Lease that is no longer its own. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Run, runResource, systemNamespace } from '../src/api/index.ts'
import type { LeaseTimings } from '../src/execution/worker/index.ts'
import { findRunProcesses } from '../src/execution/workspace/index.ts'
import { leaseResource } from '../src/kubernetes/client/index.ts'
import { rfc3339 } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { stackUidOf } from './support/worker-fixture.ts'
import { createWorkerHarness, savesOnInterrupt, shell, untilFile } from './support/worker-harness.ts'

/** For a Lease that is to expire. */
const shortLease: LeaseTimings = { durationMs: 5_000, renewMs: 500, interruptMs: 3_000, terminateMs: 3_700, killMs: 4_500 }
const harness = createWorkerHarness()
const { runsDir, startWorker, execute, assignRun, getRun, getWorker, readState, newPath } = harness
const untilExists = (path: string) => eventually(() => existsSync(path), 'the engine to start')

test('a canceled Run gets SIGINT, saves its state, releases its lock and ends as Canceled', async t => {
  const { states } = harness.fixture
  const started = newPath()
  const worker = startWorker(t)
  const assigned = await assignRun(worker.name, { stack: { command: { apply: shell(savesOnInterrupt(started)) } } })
  await untilExists(started)
  equal((await states.currentLock(stackUidOf(assigned)))?.holder.kind, 'Run')
  const runs = harness.client.resource(runResource)
  await runs.patch(assigned.metadata.name, { spec: { cancel: true } }, { type: 'merge', namespace: 'apps' })
  equal(await worker.done, 0)
  const run = await getRun(assigned)
  equal(run.status?.phase, 'Canceled', JSON.stringify(run.status))
  equal(run.status?.retryable, false)
  match(await readState(run), /saved/)
  equal(await states.currentLock(stackUidOf(run)), undefined)
  deepEqual(findRunProcesses(run.metadata.uid), [])
})

test('a Run that is canceled before it starts starts no engine', async t => {
  const started = newPath()
  const { run } = await execute(t, { cancel: true, stack: { command: { apply: ['touch', started] } } })
  equal(run.status?.phase, 'Canceled')
  equal(existsSync(started), false)
})

test('a Run that exceeds spec.timeout is interrupted and fails', async t => {
  const { run } = await execute(t, { stack: { timeout: '300ms', command: { apply: ['sleep', '100'] } } })
  equal(run.status?.phase, 'Failed')
  equal(run.status?.reason, 'Timeout')
  match(run.status?.message ?? '', /did not finish within 300ms \(spec\.timeout\)/)
  equal(run.status?.retryable, true)
})

test('a draining worker exits when it is idle, and after its Run when it is busy', async t => {
  const idle = startWorker(t)
  await harness.untilReady(idle.name)
  idle.drain.abort()
  equal(await idle.done, 0)
  equal(await getWorker(idle.name), undefined)

  const [started, stop] = [newPath(), newPath()]
  const busy = startWorker(t)
  const run = await assignRun(busy.name, { stack: { command: { apply: shell(untilFile(started, stop)) } } })
  await untilExists(started)
  busy.drain.abort()
  await eventually(async () => (await getWorker(busy.name))?.status?.phase === 'Draining', 'the worker to report that it drains')
  equal((await getRun(run)).status?.finishedAt, undefined)
  writeFileSync(stop, '')
  equal(await busy.done, 0)
  equal((await getRun(run)).status?.phase, 'Succeeded')
})

for (const [how, drainGraceMs] of [
  ['the second signal', 60_000],
  ['the end of the grace period', 200],
] as const) {
  test(`invariant 8: ${how} interrupts the engine, which saves its state`, async t => {
    const started = newPath()
    const worker = startWorker(t, { drainGraceMs })
    const run = await assignRun(worker.name, { stack: { command: { apply: shell(savesOnInterrupt(started)) } } })
    await untilExists(started)
    worker.drain.abort()
    if (how === 'the second signal') worker.interrupt.abort()
    equal(await worker.done, 0)
    const { status } = await getRun(run)
    equal(status?.reason, 'WorkerDrained')
    match(status?.message ?? '', how === 'the second signal' ? /got a second signal to stop/ : /grace period expired/)
    equal(status?.retryable, true)
    match(await readState(run), /saved/)
  })
}

test('invariant 2: a worker that is cut off from the API stops its engine before the Lease expires, saves the state and does not write the Run', async t => {
  const started = newPath()
  const { client, proxy } = harness
  const worker = startWorker(t, { viaProxy: true, lease: shortLease })
  const run = await assignRun(worker.name, { stack: { command: { apply: shell(savesOnInterrupt(started)) } } })
  await untilExists(started)
  await eventually(async () => (await getRun(run)).status?.phase === 'Applying', 'Applying')
  const renewTime = async () => (await client.resource(leaseResource).get(worker.name, { namespace: systemNamespace })).spec?.renewTime
  const before = await renewTime()
  await eventually(async () => (await renewTime()) !== before, 'a renewal')
  proxy.cut()
  t.after(() => proxy.restore())
  const cutAtMs = performance.now()
  await eventually(() => findRunProcesses(run.metadata.uid).length === 0, 'the engine to exit')
  const tookMs = performance.now() - cutAtMs
  ok(tookMs > shortLease.interruptMs - 2 * shortLease.renewMs && tookMs < shortLease.durationMs, `exited after ${tookMs} ms`)
  equal(await worker.done, 3, worker.logLines.join('\n'))
  proxy.restore()
  equal((await getRun(run)).status?.phase, 'Applying', 'a Run that may be Lost was written')
  match(await readState(run), /saved/)
  await eventually(() => !existsSync(join(runsDir, run.metadata.uid)), 'the directory to be removed')
})

test('an API server that is unreachable for less than the Lease does not affect the Run', async t => {
  const [started, stop] = [newPath(), newPath()]
  const { proxy } = harness
  const worker = startWorker(t, { viaProxy: true })
  const run = await assignRun(worker.name, { stack: { command: { apply: shell(untilFile(started, stop)) } } })
  await untilExists(started)
  proxy.cut()
  t.after(() => proxy.restore())
  writeFileSync(stop, '')
  await eventually(() => worker.logLines.some(line => line.startsWith('the watch of Runs failed')), 'the worker to notice')
  proxy.restore()
  equal(await worker.done, 0, worker.logLines.join('\n'))
  equal((await getRun(run)).status?.phase, 'Succeeded')
})

for (const [name, revoke] of [
  [
    'a newer epoch (invariant 3)',
    async run => {
      const { states } = harness.fixture
      const { epoch } = run.spec
      const stackUid = stackUidOf(run)
      await states.unlock({ stackUid, holder: { kind: 'Run', runName: run.metadata.name, epoch } })
      await states.lock({ stackUid, holder: { kind: 'Run', runName: 'newer', epoch: epoch + 1 } }, async () => true)
    },
  ],
  [
    'a Run that was declared Lost',
    async run => {
      const runs = harness.client.resource(runResource)
      const status = { phase: 'Lost', finishedAt: rfc3339(Date.now()) } as const
      await runs.patchStatus(run.metadata.name, { status }, { namespace: 'apps' })
    },
  ],
  [
    'a Lease that was deleted',
    async run => void (await harness.client.resource(leaseResource).delete(run.spec.workerName as string, { namespace: systemNamespace })),
  ],
] as [string, (run: Run) => Promise<void>][]) {
  test(`${name} stops the engine, and the Run is not written any more`, async t => {
    const started = newPath()
    const worker = startWorker(t)
    const apply = shell(`touch ${started}; n=0; while :; do n=$((n+1)); echo "{\\"n\\":$n}" > $OARLOCK_STATE; sleep 0.05; done`)
    const assigned = await assignRun(worker.name, { stack: { command: { apply } } })
    await eventually(async () => existsSync(started) && (await getRun(assigned)).status?.phase === 'Applying', 'Applying')
    await revoke(assigned)
    equal(await worker.done, 3, worker.logLines.join('\n'))
    deepEqual(findRunProcesses(assigned.metadata.uid), [])
    const run = await harness.client.resource(runResource).getOrUndefined(assigned.metadata.name, { namespace: 'apps' })
    ok(run === undefined || run.status?.phase === 'Applying' || run.status?.phase === 'Lost', JSON.stringify(run?.status))
    equal(existsSync(join(runsDir, assigned.metadata.uid)), false)
    if (name.startsWith('a newer')) {
      ok((await harness.fixture.states.orphans(stackUidOf(assigned))).length > 0, 'the rejected version was not kept as an orphan')
    }
  })
}

test('a Run that was deleted by force stops the engine; its state stays in its directory, because the store denies it to the worker', async t => {
  const started = newPath()
  // A supervisor of its own, which would retry for 15 minutes.
  const worker = startWorker(t, { cacheDir: join(harness.directory, 'own-cache') })
  const apply = shell(`echo '{"n":1}' > $OARLOCK_STATE; ${savesOnInterrupt(started)}`)
  const run = await assignRun(worker.name, { stack: { command: { apply } } })
  await eventually(async () => existsSync(started) && (await getRun(run)).status?.phase === 'Applying', 'Applying')
  const directory = join(runsDir, run.metadata.uid)
  const supervisorPids = readdirSync(directory)
    .filter(name => name.startsWith('owner-'))
    .map(name => Number(name.slice('owner-'.length)))
    .filter(pid => pid !== process.pid)
  t.after(() => {
    for (const pid of supervisorPids) process.kill(pid, 'SIGKILL')
  })
  // Only without the finalizer of dispatch, which keeps a Run until it has ended.
  await harness.client.resource(runResource).delete(run.metadata.name, { namespace: 'apps' })
  equal(await worker.done, 3, worker.logLines.join('\n'))
  deepEqual(findRunProcesses(run.metadata.uid), [])
  match(readFileSync(join(directory, 'scratch', 'terraform.tfstate'), 'utf8'), /saved/)
})
