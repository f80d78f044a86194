/** The identity of a Run and its end are final, for users, controllers and workers; its state is closed to its worker then. */
import { deepEqual, equal, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { endedPhases, type Run, type RunPhase, type RunSpec, runPhases, runResource } from '../src/api/index.ts'
import { type Client, createClient } from '../src/kubernetes/client/index.ts'
import { stackUidOf, startWorkerFixture, type WorkerFixture } from './support/worker-fixture.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-ended-run-'))
let fixture: WorkerFixture
let worker: Client
let count = 0

before(async () => {
  fixture = await startWorkerFixture(directory, { isLockAbandoned: false })
  const { url, caCertificate } = fixture.server
  worker = await createClient({ cluster: { server: url, caCertificate, token: fixture.issueWorkerToken('w') } })
})
after(async () => {
  await worker?.close()
  await fixture?.close()
  rmSync(directory, { recursive: true, force: true })
})

const namespace = 'apps'
const runs = () => fixture.client.resource(runResource)
const ofWorker = () => worker.resource(runResource)

async function createRun(spec: Partial<RunSpec> = {}): Promise<Run> {
  const name = `run-${++count}`
  const stack = { engine: 'command', source: { inline: { files: { f: '' } } } } as RunSpec['stack']
  const identity = {
    type: 'Apply',
    stackRef: { name: 'app', uid: `u-${count}`, generation: 1 },
    epoch: 1,
    reason: 'NewGeneration',
  } as const
  const all: RunSpec = { ...identity, stack, revision: 'r', inputsDigest: 'i', pool: 'default', priority: 0, workerName: 'w', ...spec }
  return (await runs().create({ metadata: { name, namespace }, spec: all })) as Run
}

const isFinal = /is invalid: .*(immutable|final|never goes back|less than or equal)/

test('a new Run is Queued without a write of its status', async () => {
  deepEqual((await createRun()).status, { phase: 'Queued' })
})

test('no user, not even an administrator, changes the identity and the inputs of a Run, and its worker is set once', async () => {
  const { metadata } = await createRun({ approvedPlan: { digest: 'd', runName: 'p' } })
  const unassigned = await createRun({ workerName: undefined })
  const patch = async (name: string, spec: object) => await runs().patch(name, { spec } as object, { type: 'merge', namespace })
  const changes: object[] = [
    ...[
      { type: 'Plan' },
      { epoch: 2 },
      { revision: 'x' },
      { inputsDigest: 'x' },
      { pool: 'x' },
      { reason: 'x' },
      { queuedSince: '2026-01-01T00:00:00Z' },
    ],
    ...[
      { stackRef: { uid: 'v' } },
      { stack: { engine: 'opentofu' } },
      { approvedPlan: { digest: 'x' } },
      { approvedPlan: null },
      { recoveredFrom: 'x' },
    ],
    ...[{ workerName: 'v' }, { workerName: null }],
  ]
  for (const change of changes) await rejects(patch(metadata.name, change), isFinal, JSON.stringify(change))
  await patch(unassigned.metadata.name, { workerName: 'w', assignedAt: '2026-01-01T00:00:00Z' })
  await rejects(patch(unassigned.metadata.name, { assignedAt: '2027-01-01T00:00:00Z' }), isFinal)
  await patch(metadata.name, { cancel: true, priority: 7, priorityClass: 'Drift' })
  await rejects(createRun({ epoch: 2 ** 31 }), isFinal)
})

test('a phase only moves forward, for every pair of phases', async () => {
  const ended: readonly RunPhase[] = endedPhases
  for (const from of runPhases) {
    for (const to of runPhases) {
      const { metadata } = await createRun()
      const report = async (phase: RunPhase) => await ofWorker().patchStatus(metadata.name, { status: { phase } }, { namespace })
      await report(from)
      const isAllowed = ended.includes(from) ? from === to : runPhases.indexOf(from) <= runPhases.indexOf(to)
      if (isAllowed) await report(to)
      else await rejects(report(to), isFinal, `${from} to ${to}`)
    }
  }
})

test('the status of a Run that has ended is final: it is neither changed nor removed', async () => {
  const { metadata } = await createRun()
  const report = async (status: unknown) => await ofWorker().patchStatus(metadata.name, { status: status as object }, { namespace })
  await report({ phase: 'Succeeded', outputs: { a: 1 } })
  for (const status of [null, { phase: null }, { outputs: { a: 2 } }, { message: 'm' }])
    await rejects(report(status), isFinal, JSON.stringify(status))
})

async function stateRequest(run: Run, method: string, resource: string, body?: string): Promise<{ status: number; body: string }> {
  const path = `/state/${namespace}/app/run/${run.metadata.name}/${resource}`
  const headers = { 'oarlock-epoch': String(run.spec.epoch) }
  const response = await worker
    .request({ method: method as 'GET', path, headers, ...(body && { body: Buffer.from(body) }) })
    .catch(error => error)
  return { status: response.status ?? response.code, body: String(response.body ?? response.message) }
}

for (const { phase, finishedAgoMs, want } of [
  { phase: 'Succeeded', finishedAgoMs: 1_000, want: { current: 'first', orphans: ['RunEnded'], put: 409 } },
  { phase: 'Succeeded', finishedAgoMs: 3_600_000, want: { current: 'first', orphans: [], put: 403 } },
  { phase: 'Succeeded', finishedAgoMs: -3_600_000, want: { current: 'first', orphans: [], put: 403 } },
  { phase: 'Lost', finishedAgoMs: 1_000, want: { current: 'late', orphans: [], put: 200 } },
] as const) {
  test(`a Run that ended as ${phase} ${finishedAgoMs / 1_000} s ago: its worker does not read the state, and a late version is answered with ${want.put}`, async () => {
    const run = await createRun()
    const stackUid = stackUidOf(run)
    equal((await stateRequest(run, 'PUT', 'state', '{"serial":1,"first":1}')).status, 200)
    equal((await stateRequest(run, 'GET', 'state')).status, 200)
    const finishedAt = new Date(Date.now() - finishedAgoMs).toISOString().replace(/\.\d+/, '')
    await runs().patchStatus(run.metadata.name, { status: { phase, finishedAt } }, { namespace })
    const refused = [
      await stateRequest(run, 'GET', 'state'),
      await stateRequest(run, 'POST', 'lock'),
      await stateRequest(run, 'GET', `plan/${'a'.repeat(64)}`),
    ]
    deepEqual(
      refused.map(({ status }) => status),
      [403, 403, 403],
    )
    equal((await stateRequest(run, 'PUT', 'state', '{"serial":2,"late":1}')).status, want.put)
    const current = await fixture.states.readVersion({ stackUid })
    equal(
      Buffer.from(current?.bytes ?? [])
        .toString()
        .includes(want.current),
      true,
    )
    deepEqual(
      (await fixture.states.orphans(stackUid)).map(({ reason }) => reason),
      want.orphans,
    )
  })
}
