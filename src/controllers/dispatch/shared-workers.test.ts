import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type Worker, workerBusyReason } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import type { DispatchAction } from './dispatch-action.ts'
import { DispatchCore } from './dispatch-core.ts'
import type { DispatchEvent, WorkerLease } from './dispatch-event.ts'
import { rejectedForMs } from './foreign-runs.ts'
import { epochMs, testPool, testRun, testWorker } from './objects.testing.ts'
import { spareDelayMs } from './spare-workers.ts'

/** A dispatcher whose Runs are in the namespace `ns`, and that prefers the workers of bucket 1. */
function start() {
  let atMs = 0
  const now = () => ({ wallMs: epochMs + atMs, monotonicMs: atMs })
  const isPreferred = ({ metadata }: Worker) => metadata.labels?.[labels.workerBucket] === '1'
  const core = new DispatchCore({ shared: { isPreferred, sizesPools: false } }, now())
  const observe = (...events: DispatchEvent[]) => {
    for (const event of events) core.observe(event, now())
  }
  const meta = { name: 'ns', uid: 'ns', resourceVersion: '1', generation: 1, creationTimestamp: rfc3339(epochMs) }
  observe(
    { kind: 'NamespaceChanged', namespace: { apiVersion: 'v1', kind: 'Namespace', metadata: meta } },
    { kind: 'PoolChanged', pool: testPool('default') },
    { kind: 'SubjectChanged', subject: { kind: 'Stack', namespace: 'ns', name: 'app', uid: 'u' }, recordedEpoch: 0 },
  )
  const decide = (): readonly DispatchAction[] => core.decide(now(), () => 0).actions
  const assigned = () => decide().flatMap(action => (action.kind === 'AssignRun' ? [`${action.object.name} to ${action.worker}`] : []))
  const worker = (
    name: string,
    bucket: string,
    { runs = [], slots = 1, version = '1' }: { runs?: string[]; slots?: number; version?: string } = {},
  ) => {
    const own = testWorker(name, { slots, lifecycle: 'Warm', labels: { [labels.workerBucket]: bucket }, status: { runs } })
    observe({ kind: 'WorkerChanged', worker: { ...own, metadata: { ...own.metadata, resourceVersion: version } } })
    observe({ kind: 'LeaseChanged', lease: leaseOf(name, 'a') })
  }
  const run = (name: string, options: Parameters<typeof testRun>[1] = {}) => observe({ kind: 'RunChanged', run: testRun(name, options) })
  const advance = (ms: number) => {
    atMs += ms
  }
  return { core, observe, decide, assigned, worker, run, advance }
}

const leaseOf = (worker: string, resourceVersion: string): WorkerLease => ({
  worker,
  uid: `lease-${worker}`,
  resourceVersion,
  isOfWorker: true,
})

test('a worker that another dispatcher prefers is used when none of the preferred ones has a free slot', () => {
  const { assigned, worker, run, advance } = start()
  worker('a-spare', '2')
  worker('b-own', '1')
  run('r1')
  deepEqual(assigned(), ['r1 to b-own'])
  advance(spareDelayMs)
  run('r2')
  deepEqual(assigned(), ['r2 to a-spare'])
  run('r3')
  deepEqual(assigned(), [])
})

test('a worker that another dispatcher prefers gets a Run only when its slot has been free for a moment', () => {
  const { core, observe, assigned, worker, run, advance } = start()
  worker('w', '2')
  run('r1')
  deepEqual(assigned(), [], 'it has just registered')
  advance(spareDelayMs - 1)
  deepEqual(assigned(), [])
  equal(core.decide({ wallMs: epochMs + spareDelayMs - 1, monotonicMs: spareDelayMs - 1 }, () => 0).requeueAfterMs, 1)
  // Its preferred dispatcher is first.
  worker('w', '2', { runs: ['elsewhere/x'], version: '2' })
  advance(spareDelayMs)
  deepEqual(assigned(), [])
  worker('w', '2', { version: '3' })
  deepEqual(assigned(), [], 'its slot has just become free')
  // Other changes of the Worker do not begin the delay again.
  advance(spareDelayMs - 1)
  worker('w', '2', { version: '4' })
  advance(1)
  deepEqual(assigned(), ['r1 to w'])
  // The next Run of this dispatcher follows immediately.
  observe({ kind: 'RunChanged', run: testRun('r1', { worker: 'w', phase: 'Succeeded', version: '5' }) })
  run('r2')
  deepEqual(assigned(), ['r2 to w'])
})

test('a second free slot of a worker that another dispatcher prefers does not delay the use of the first one', () => {
  const { assigned, worker, run, advance } = start()
  worker('w', '2', { slots: 2, runs: ['elsewhere/x'] })
  advance(spareDelayMs)
  deepEqual(assigned(), [])
  worker('w', '2', { slots: 2, version: '2' })
  run('r1')
  deepEqual(assigned(), ['r1 to w'])
})

test('Runs of other partitions use slots, and those of this one are not counted twice', () => {
  const { assigned, worker, run } = start()
  worker('w', '1', { slots: 3, runs: ['elsewhere/x'] })
  run('r1')
  run('r2')
  run('r3')
  deepEqual(assigned(), ['r1 to w', 'r2 to w'])
  // The worker reports them too.
  worker('w', '1', { slots: 3, runs: ['elsewhere/x', 'ns/r1', 'ns/r2'], version: '2' })
  deepEqual(assigned(), [])
  worker('w', '1', { slots: 3, runs: ['ns/r1', 'ns/r2'], version: '3' })
  deepEqual(assigned(), ['r3 to w'])
})

test('a worker that has rejected a Run gets no other before it has reported again, or some time has passed', () => {
  for (const hasReported of [true, false]) {
    const { observe, assigned, worker, run, advance } = start()
    worker('w', '1')
    run('r1')
    deepEqual(assigned(), ['r1 to w'])
    const rejected = testRun('r1', { worker: 'w', version: '5' })
    observe({ kind: 'RunChanged', run: { ...rejected, status: { phase: 'Lost', reason: workerBusyReason } } })
    run('r2')
    deepEqual(assigned(), [], 'its slot is free as far as this dispatcher knows')
    // From before its rejection.
    worker('w', '1', { version: '4' })
    deepEqual(assigned(), [])
    if (hasReported) {
      worker('w', '1', { version: '6', runs: ['elsewhere/x'] })
      deepEqual(assigned(), [])
      worker('w', '1', { version: '7' })
    } else {
      advance(rejectedForMs)
      observe({ kind: 'LeaseChanged', lease: leaseOf('w', 'b') })
    }
    deepEqual(assigned(), ['r2 to w'])
  }
})

test('a Run whose worker is outside the view is lost only after its Lease was read twice without a renewal between', () => {
  const { core, observe, decide, run, advance } = start()
  run('r1', { worker: 'elsewhere', phase: 'Applying' })
  const confirmations = () => decide().filter(action => action.kind === 'ConfirmLoss')
  deepEqual(confirmations(), [])
  advance(10_000)
  deepEqual(confirmations(), [{ kind: 'ConfirmLoss', worker: 'elsewhere', lease: undefined }])
  const settle = (outcome: 'Renewed' | 'Lost', version?: string) => {
    const lease = version === undefined ? undefined : { ...leaseOf('elsewhere', version), isOfWorker: false, isUnwatched: true }
    observe({ kind: 'LossSettled', worker: 'elsewhere', outcome, lease })
  }
  settle('Renewed', '7')
  for (const version of ['7', '8']) {
    advance(9_000)
    deepEqual(confirmations(), [], 'it may be renewed')
    advance(1_000)
    deepEqual(confirmations(), [{ kind: 'ConfirmLoss', worker: 'elsewhere', lease: { uid: 'lease-elsewhere', resourceVersion: version } }])
    settle('Renewed', String(Number(version) + 1))
  }
  equal(core.hasRun('ns/r1'), true)
  advance(10_000)
  equal(confirmations().length, 1)
  settle('Lost')
  const lost = decide().find(action => action.kind === 'PatchRunStatus')
  deepEqual([lost?.status.phase, lost?.status.reason], ['Lost', 'WorkerLost'])
  // Nothing of it is kept, and nothing is asked any more.
  observe({ kind: 'RunChanged', run: testRun('r1', { worker: 'elsewhere', phase: 'Lost', version: '9' }) })
  decide()
  advance(60_000)
  deepEqual(confirmations(), [])
})

test('a dispatcher that does not size pools starts and drains no worker, and writes no status of a pool', () => {
  const { decide, run, worker, advance } = start()
  worker('w', '1')
  for (let index = 0; index < 9; index++) run(`r${index}`)
  const kinds = new Set<string>()
  for (let index = 0; index < 10; index++) {
    for (const { kind } of decide()) kinds.add(kind)
    advance(1_000)
  }
  deepEqual(
    [...kinds].filter(kind => /Pool|Start|Drain/.test(kind)),
    [],
  )
})

test('a Run that waits for a new worker names home, which starts it, and states that home does not answer as long as that is known', () => {
  const { core, observe, decide, run, advance } = start()
  run('r1')
  const message = () => core.report({ limit: 1 }, epochMs).runs[0]?.message
  const report = () => decide().find(action => action.kind === 'ReportDemand')
  const settle = (outcome: 'Written' | 'Failed') => {
    const action = report()
    if (action) observe({ kind: 'WriteSettled', object: action.object, outcome })
    return action?.report?.queued
  }
  equal(settle('Failed'), 1)
  const subject = 'pool default has no worker for this partition'
  equal(message(), `${subject}, and home, whose controllers start one, does not answer; check the API server of home`)
  advance(2_000)
  equal(settle('Written'), 1, 'it is reported again')
  equal(message(), `${subject}, and the controllers of home start one; if they do not, see the status of WorkerPool default at home`)
})
