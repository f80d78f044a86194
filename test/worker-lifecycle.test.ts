/** When a worker starts Runs and when it exits: one-shot and warm, slots, limits, a taken name, a canceled drain. */
import { equal, match, ok } from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { systemNamespace, workerResource } from '../src/api/index.ts'
import { leaseResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { createWorkerHarness, shell, untilFile } from './support/worker-harness.ts'

const harness = createWorkerHarness()
const { startWorker, assignRun, getRun, getWorker, newPath } = harness
const untilSucceeded = (run: Parameters<typeof getRun>[0]) =>
  eventually(async () => (await getRun(run)).status?.phase === 'Succeeded', 'the Run to succeed')
const setDrain = (name: string, drain: boolean) =>
  harness.client.resource(workerResource).patch(name, { spec: { drain } }, { type: 'merge' })

test('a one-shot worker without a Run exits after its idle timeout; a second worker of its name is rejected', async t => {
  const first = startWorker(t, { idleTimeoutMs: 700 })
  await harness.untilReady(first.name)
  const second = startWorker(t, { name: first.name })
  equal(await second.done, 4)
  match(second.logLines.join('\n'), /already exists; choose another with --name/)
  const lease = await harness.client.resource(leaseResource).getOrUndefined(first.name, { namespace: systemNamespace })
  ok(lease, 'the rejected worker deleted the Lease of the first')
  equal(await first.done, 0)
})

/** The request of a controller to start a worker on some host. */
const requestWorker = async (name: string) =>
  (
    await harness.client
      .resource(workerResource)
      .create({ metadata: { name }, spec: { pool: 'default', slots: 1, lifecycle: 'OneShot', start: true } })
  ).metadata.uid

test('a worker takes over the Worker that requested its start; a second process for the request is rejected', async t => {
  const workerUid = await requestWorker('requested')
  const capabilities = { labels: { site: 'west' }, engines: undefined, capacity: undefined, isolation: undefined }
  const first = startWorker(t, { name: 'requested', workerUid, capabilities, idleTimeoutMs: 2_000 })
  await harness.untilReady('requested')
  const second = startWorker(t, { name: 'requested', workerUid })
  equal(await second.done, 4)
  const { metadata, status } = (await getWorker('requested'))!
  equal(metadata.uid, workerUid)
  equal(metadata.labels?.site, 'west')
  equal(status?.phase, 'Ready')
  equal(await first.done, 0)
  equal(await getWorker('requested'), undefined)
})

test('a worker whose request was withdrawn, or made again, does not register', async t => {
  const workerUid = await requestWorker('withdrawn')
  await harness.client.resource(workerResource).delete('withdrawn')
  const late = startWorker(t, { name: 'withdrawn', workerUid })
  equal(await late.done, 4)
  match(late.logLines.join('\n'), /the request to start worker \\"withdrawn\\" was withdrawn/)
  equal(await harness.client.resource(leaseResource).getOrUndefined('withdrawn', { namespace: systemNamespace }), undefined)
  await requestWorker('withdrawn')
  equal(await startWorker(t, { name: 'withdrawn', workerUid }).done, 4)
  equal((await getWorker('withdrawn'))?.status?.phase, 'Pending')
})

test('a warm worker executes one Run after another', async t => {
  const worker = startWorker(t, { once: false })
  for (let round = 0; round < 3; round++) await untilSucceeded(await assignRun(worker.name, { stack: { command: { apply: ['true'] } } }))
  worker.drain.abort()
  equal(await worker.done, 0)
})

test('a worker with two slots executes two Runs at the same time, and exits after its Run limit', async t => {
  const worker = startWorker(t, { once: false, slots: 2, recycle: { afterRuns: 3 } })
  const [a, b] = [newPath(), newPath()]
  // Each waits for the other.
  const both = [
    await assignRun(worker.name, { stack: { command: { apply: shell(untilFile(a, b)) } } }),
    await assignRun(worker.name, { stack: { command: { apply: shell(untilFile(b, a)) } } }),
  ]
  for (const run of both) await untilSucceeded(run)
  const idle = await eventually(async () => {
    const found = await getWorker(worker.name)
    return found?.status?.phase === 'Ready' && found.status.idleSince ? found : undefined
  }, 'the worker to be idle')
  equal(idle.spec.slots, 2)
  const last = await assignRun(worker.name, { stack: { command: { apply: ['true'] } } })
  equal(await worker.done, 0)
  equal((await getRun(last)).status?.phase, 'Succeeded')
  ok(
    worker.logLines.some(line => line.startsWith('draining') && line.includes('RunLimitReached')),
    worker.logLines.join('\n'),
  )
})

test('a worker above its memory limit exits after its Run', async t => {
  const worker = startWorker(t, { once: false, recycle: { aboveMemoryBytes: 1 } })
  const run = await assignRun(worker.name, { stack: { command: { apply: ['true'] } } })
  equal(await worker.done, 0)
  equal((await getRun(run)).status?.phase, 'Succeeded')
  ok(
    worker.logLines.some(line => line.includes('MemoryLimitReached')),
    worker.logLines.join('\n'),
  )
})

test('a worker whose object was deleted exits: no Run is assigned to it any more', async t => {
  const worker = startWorker(t, { once: false })
  await harness.untilReady(worker.name)
  await harness.client.resource(workerResource).delete(worker.name)
  equal(await worker.done, 0)
})

test('a worker whose drain is canceled while a Run is running keeps running and executes the next Run', async t => {
  const [started, stop] = [newPath(), newPath()]
  const worker = startWorker(t, { once: false })
  const first = await assignRun(worker.name, { stack: { command: { apply: shell(untilFile(started, stop)) } } })
  await eventually(() => existsSync(started), 'the engine to start')
  for (const isDraining of [true, false]) {
    await setDrain(worker.name, isDraining)
    const hasReported = async () => ((await getWorker(worker.name))?.status?.phase === 'Draining') === isDraining
    await eventually(hasReported, `the worker to report draining: ${isDraining}`)
  }
  equal((await getWorker(worker.name))?.status?.reason, undefined)
  writeFileSync(stop, '')
  // Before, its slot is not free, and the worker would reject the next one.
  await untilSucceeded(first)
  await untilSucceeded(await assignRun(worker.name, { stack: { command: { apply: ['true'] } } }))
  await setDrain(worker.name, true)
  equal(await worker.done, 0)
})
