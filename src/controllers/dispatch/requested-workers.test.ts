import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { subjectOf, type Worker } from '../../api/index.ts'
import type { DispatchAction } from './dispatch-action.ts'
import { DispatchCore } from './dispatch-core.ts'
import type { DispatchEvent } from './dispatch-event.ts'
import { versionOf } from './object-version.ts'
import { epochMs, testPool, testRun, testWorker } from './objects.testing.ts'

const worker = (name: string, status: NonNullable<Worker['status']>): Worker => {
  const made = testWorker(name, { pool: 'p' })
  return { ...made, spec: { ...made.spec, start: true }, status }
}

/** A core whose pool requests workers, at second 0. */
function setUp() {
  let nowMs = 0
  const now = () => ({ wallMs: epochMs + nowMs, monotonicMs: nowMs })
  const core = new DispatchCore({ leaseDurationMs: 10_000, claimsNames: { Process: true } }, now())
  const observe = (...events: DispatchEvent[]) => events.forEach(event => void core.observe(event, now()))
  const decide = (atSeconds: number): DispatchAction[] => {
    nowMs = atSeconds * 1_000
    const actions = [...core.decide(now(), () => 0.5).actions]
    actions.forEach(settle)
    return actions
  }
  /** The server accepts every write. */
  const settle = (action: DispatchAction) => {
    if (action.kind === 'StartWorkers' && action.claim !== undefined) {
      pool = { ...pool, status: { ...pool.status, started: action.claim } }
      observe({ kind: 'PoolChanged', pool })
    }
    const object = action.kind === 'StartWorkers' || action.kind === 'PatchPoolStatus' ? versionOf('WorkerPool', pool) : undefined
    if (object) observe({ kind: 'WriteSettled', object, outcome: 'Written' })
    else if ('object' in action) observe({ kind: 'WriteSettled', object: action.object, outcome: 'Written' })
  }
  const kinds = (actions: readonly DispatchAction[]) =>
    actions.map(({ kind }) => kind).filter(kind => kind !== 'PatchPoolStatus' && kind !== 'PatchRunStatus')
  const run = testRun('r', { pool: 'p' })
  let pool = testPool('p', { max: 2 })
  observe({ kind: 'PoolChanged', pool }, { kind: 'SubjectChanged', subject: subjectOf(run), recordedEpoch: 0 })
  observe({ kind: 'RunChanged', run })
  const request = () => {
    const start = decide(0).find(action => action.kind === 'StartWorkers')!
    return start.workers[0]!
  }
  return { observe, decide, kinds, request }
}

test('a requested worker gets no Run, is not lost while it has no Lease, and gets the Run when it has registered', () => {
  const { observe, decide, kinds, request } = setUp()
  const name = request()
  observe({ kind: 'WorkerChanged', worker: worker(name, { phase: 'Pending' }) })
  deepEqual(kinds(decide(5)), [])
  observe({ kind: 'WorkerChanged', worker: worker(name, { phase: 'Starting', host: 'h' }) })
  deepEqual(kinds(decide(25)), [])
  observe({ kind: 'WorkerChanged', worker: worker(name, { phase: 'Ready', host: 'h' }) })
  deepEqual(kinds(decide(26)), ['AssignRun'])
  // Its Lease is observed since second 25.
  equal(kinds(decide(34.9)).includes('ConfirmLoss'), false)
  equal(kinds(decide(35)).includes('ConfirmLoss'), true)
})

test('a request that is not fulfilled in time is withdrawn, and another worker is requested after the backoff', () => {
  const { observe, decide, kinds, request } = setUp()
  const name = request()
  observe({ kind: 'WorkerChanged', worker: worker(name, { phase: 'Pending' }) })
  deepEqual(kinds(decide(29)), [])
  deepEqual(kinds(decide(30)), ['StopProcess', 'ReportStartFailure'])
  observe({ kind: 'WorkerDeleted', worker: worker(name, { phase: 'Pending' }) })
  deepEqual(kinds(decide(30.5)), [])
  deepEqual(kinds(decide(32)), ['StartWorkers'])
})

test('a failed request is a failed start', () => {
  const { observe, decide, kinds, request } = setUp()
  const name = request()
  observe({ kind: 'WorkerChanged', worker: worker(name, { phase: 'Starting' }) })
  observe(
    { kind: 'WorkerExited', worker: name, exitCode: 5 },
    { kind: 'WorkerChanged', worker: worker(name, { phase: 'Failed', exitCode: 5 }) },
  )
  const failure = decide(0.5).find(action => action.kind === 'ReportStartFailure')
  equal(failure?.failure.reason, 'CredentialRejected')
  deepEqual(kinds(decide(0.9)), [])
  deepEqual(kinds(decide(1)), ['StartWorkers'])
})

test('a registered worker that fails gets no further Run, and is lost when its Lease has expired', () => {
  const { observe, decide, kinds, request } = setUp()
  const name = request()
  observe({ kind: 'WorkerChanged', worker: worker(name, { phase: 'Ready' }) })
  const lease = { worker: name, uid: 'l', resourceVersion: '1', isOfWorker: true }
  observe({ kind: 'LeaseChanged', lease })
  deepEqual(kinds(decide(1)), ['AssignRun'])
  observe(
    { kind: 'WorkerExited', worker: name, exitCode: undefined },
    { kind: 'WorkerChanged', worker: worker(name, { phase: 'Failed' }) },
    { kind: 'WorkerDeleted', worker: worker(name, { phase: 'Failed' }) },
  )
  const lost = decide(12).find(action => action.kind === 'ConfirmLoss')
  deepEqual([lost?.worker, lost?.lease], [name, { uid: 'l', resourceVersion: '1' }])
})

test('a Run that a worker Pod gets records which Pod that is', () => {
  const { observe, decide, request } = setUp()
  const made = worker(request(), { phase: 'Ready' })
  const pod = { namespace: 'oarlock-system', serviceAccountName: 'oarlock-worker', uid: 'a-1' }
  observe({ kind: 'WorkerChanged', worker: { ...made, spec: { ...made.spec, pod } } })
  const assignment = decide(1).find(action => action.kind === 'AssignRun')
  deepEqual(assignment?.workerPod, { namespace: 'oarlock-system', uid: 'a-1' })
})
