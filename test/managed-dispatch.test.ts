/** Managed resources whose changes are Runs: a provider in this process, the controllers and their workers as processes (issue 17). */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { isEnded, workerResource } from '../src/api/index.ts'
import { annotations, managedFinalizer } from '../src/controllers/managed/index.ts'
import { installKinds, secretResource } from '../src/kubernetes/client/index.ts'
import { findCondition } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { type JobBody, jobResource, startJobProvider } from './support/managed/job.ts'
import { ManagedObjects } from './support/managed/managed-objects.ts'
import { useOarlock } from './support/oarlock-fixture.ts'

describe('a managed resource that is dispatched to a Stack', () => {
  const oarlock = useOarlock()
  const { stacks } = oarlock
  const namespace = 'default'
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-dispatch-'))
  let jobs: ManagedObjects<JobBody>
  before(async () => {
    await installKinds(oarlock.client, [jobResource])
    jobs = new ManagedObjects(oarlock.client, jobResource)
  })
  after(() => rmSync(directory, { recursive: true, force: true }))

  const path = (name: string) => join(directory, name)
  const lines = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [])
  const create = (name: string, forProvider: JobBody['spec']['forProvider'], spec: object = {}) =>
    jobs.handle.create({ metadata: { name, namespace }, spec: { forProvider, ...spec } })
  /** Appends to the ledger, then waits until the file `go` exists. */
  const waits = (ledger: string, go: string) =>
    `echo $OARLOCK_RUN >> ${ledger}; echo "::progress 1/2 first step"; while [ ! -e ${go} ]; do sleep 0.05; done; echo done >> ${ledger}`

  test('a resource becomes a Stack that it controls, its outputs are its connection details, and its deletion destroys', async () => {
    await using _ = await startJobProvider(oarlock.client)
    const script = `echo '{"size":3,"password":{"value":"hidden-one","sensitive":true}}' > $OARLOCK_OUTPUTS`
    await create('a', { script, destroy: `touch ${path('a-destroyed')}` }, { writeConnectionSecretToRef: { name: 'a-connection' } })
    const job = await jobs.until('a', 'Ready', 'Available')
    deepEqual(job.status?.atProvider, { size: 3 })
    deepEqual(job.metadata.finalizers, [managedFinalizer])
    equal(findCondition(job.status?.conditions, 'Synced')?.reason, 'ReconcileSuccess')
    const stack = await stacks.get('job-a')
    equal(stack.metadata.ownerReferences?.[0]?.uid, job.metadata.uid)
    deepEqual(job.status?.run, { name: stack.status?.lastRun?.name, type: 'Apply', phase: 'Succeeded' })
    const secret = await eventually(
      () => oarlock.client.resource(secretResource).getOrUndefined('a-connection', { namespace }),
      'the Secret',
    )
    equal(Buffer.from(secret?.data?.password ?? '', 'base64').toString(), 'hidden-one')
    ok(!JSON.stringify(job.status).includes('hidden-one'))
    await jobs.handle.delete('a', { namespace })
    await jobs.untilGone('a')
    ok(existsSync(path('a-destroyed')), 'destroyed before the resource was deleted')
    await stacks.untilDeleted('job-a')
  })

  test('a long Run shows its progress, survives a restart of the provider, and is started once', async () => {
    const first = await startJobProvider(oarlock.client)
    await create('long', { script: waits(path('long'), path('long-go')) })
    await jobs.until('long', 'Ready', 'Creating', '(1/2: first step)')
    const { run } = (await jobs.get('long')).status ?? {}
    deepEqual([run?.phase, run?.progress], ['Applying', { done: 1, total: 2, current: 'first step' }])
    await first.stop()
    await using _ = await startJobProvider(oarlock.client)
    writeFileSync(path('long-go'), '')
    await jobs.until('long', 'Ready', 'Available')
    deepEqual([lines(path('long')).length, lines(path('long')).at(-1)], [2, 'done'])
  })

  test('a change of the resource is an update, and one that people made to the Stack is corrected unless the resource leaves it open', async () => {
    await using _ = await startJobProvider(oarlock.client)
    await create('b', { script: `echo 1 >> ${path('b')}` })
    await jobs.until('b', 'Ready', 'Available')
    await jobs.patch('b', { spec: { forProvider: { script: `echo 2 >> ${path('b')}` } } })
    await eventually(() => lines(path('b')).includes('2'), 'the second script')
    await jobs.until('b', 'Ready', 'Available')
    await stacks.patch('job-b', { spec: { command: { apply: ['false'] }, priority: 7, deletionProtection: true } })
    const corrected = await stacks.until('job-b', 'corrected', ({ spec }) => spec.command?.apply?.[2] === `echo 2 >> ${path('b')}`)
    equal(corrected.spec.deletionProtection, true)
    await stacks.patch('job-b', { spec: { deletionProtection: false } })
  })

  test('a failed Run is Synced=False with its reason, and is repeated when that is requested', async () => {
    await using _ = await startJobProvider(oarlock.client)
    await create('c', { script: `echo x >> ${path('c')}; [ -e ${path('c-ok')} ] || { echo "no space left" >&2; exit 3; }` })
    const failed = await jobs.until('c', 'Synced', 'ReconcileError', 'exit code 3: no space left')
    equal(findCondition(failed.status?.conditions, 'Ready')?.reason, 'Unavailable')
    writeFileSync(path('c-ok'), '')
    await jobs.annotate('c', { [annotations.reconcileRequestedAt]: '2026-11-27T06:00:00Z' })
    await jobs.until('c', 'Ready', 'Available')
    await jobs.until('c', 'Synced', 'ReconcileSuccess')
    equal(lines(path('c')).length, 2)
  })

  test('a Run that is canceled is reported, and is not repeated until that is requested', async () => {
    await using _ = await startJobProvider(oarlock.client)
    await create('d', { script: waits(path('d'), path('d-go')) })
    const run = await stacks.untilRun('job-d', 'the start', () => lines(path('d')).length > 0)
    await oarlock.succeeds('cancel', run.metadata.name)
    await jobs.until('d', 'Synced', 'ReconcileError', 'RunCanceled')
    equal(lines(path('d')).length, 1)
    writeFileSync(path('d-go'), '')
    await jobs.annotate('d', { [annotations.reconcileRequestedAt]: 'now' })
    await jobs.until('d', 'Ready', 'Available')
    equal(lines(path('d')).filter(line => line !== 'done').length, 2)
  })

  test('a deletion waits for the active Run, then destroys', async () => {
    await using _ = await startJobProvider(oarlock.client)
    await create('e', { script: waits(path('e'), path('e-go')), destroy: `echo destroyed >> ${path('e')}` })
    await eventually(() => lines(path('e')).length > 0, 'the Run')
    await jobs.handle.delete('e', { namespace })
    await jobs.until('e', 'Ready', 'Deleting', 'Deletion is waiting')
    writeFileSync(path('e-go'), '')
    await jobs.untilGone('e')
    deepEqual(lines(path('e')).slice(1), ['done', 'destroyed'])
  })

  test('a Stack of someone else is neither changed nor deleted', async () => {
    await using _ = await startJobProvider(oarlock.client)
    const source = { inline: { files: { a: '' } } }
    await stacks.create('job-f', { engine: 'command', source, command: { apply: ['true'] } })
    await create('f', { script: 'false' })
    const job = await jobs.until('f', 'Synced', 'ReconcileError', 'Stack default/job-f exists')
    match(
      findCondition(job.status?.conditions, 'Synced')?.message ?? '',
      /has no owner: delete it, or rename this Job; it is not taken over/,
    )
    await jobs.handle.delete('f', { namespace })
    await jobs.untilGone('f')
    deepEqual((await stacks.get('job-f')).spec.command?.apply, ['true'])
  })

  test('without permission to delete, the Stack is kept and suspended, and a resource of the same name takes it again', async () => {
    await using _ = await startJobProvider(oarlock.client)
    const forProvider = { script: `echo x >> ${path('g')}`, destroy: `touch ${path('g-destroyed')}` }
    await create('g', forProvider, { managementPolicies: ['Observe', 'Create', 'Update'] })
    await jobs.until('g', 'Ready', 'Available')
    await jobs.handle.delete('g', { namespace })
    await jobs.untilGone('g')
    const kept = await stacks.until('job-g', 'suspended', ({ spec }) => spec.suspend === true)
    deepEqual(kept.metadata.ownerReferences ?? [], [])
    await create('g', forProvider)
    const job = await jobs.until('g', 'Ready', 'Available')
    const taken = await stacks.get('job-g')
    deepEqual([taken.metadata.uid, taken.spec.suspend], [kept.metadata.uid, false])
    equal(taken.metadata.ownerReferences?.[0]?.uid, job.metadata.uid)
    equal(existsSync(path('g-destroyed')), false)
    equal(lines(path('g')).length, 1, 'the same Stack needs no second Run')
  })

  test('a paused resource suspends its Stack until it is resumed', async () => {
    await using _ = await startJobProvider(oarlock.client)
    await create('h', { script: 'true' })
    await jobs.until('h', 'Ready', 'Available')
    await jobs.annotate('h', { [annotations.paused]: 'true' })
    await jobs.until('h', 'Synced', 'ReconcilePaused')
    equal((await stacks.get('job-h')).spec.suspend, true)
    await jobs.patch('h', { spec: { forProvider: { script: `touch ${path('h')}` } } })
    await jobs.annotate('h', { [annotations.paused]: null })
    await eventually(() => existsSync(path('h')), 'the Run after the pause')
    await jobs.until('h', 'Ready', 'Available')
  })

  test('a worker that is killed: the Run is lost, reported, and continued by another one', async () => {
    await using _ = await startJobProvider(oarlock.client)
    await create('i', { script: `${waits(path('i'), path('i-go'))}` })
    await eventually(() => lines(path('i')).length > 0, 'the Run')
    const run = await stacks.untilRun('job-i', 'its worker', ({ spec }) => spec.workerName !== undefined)
    const worker = await oarlock.client.resource(workerResource).get(run.spec.workerName ?? '')
    process.kill(worker.status?.pid ?? 0, 'SIGKILL')
    await stacks.untilRun('job-i', 'the end', each => each.metadata.name === run.metadata.name && isEnded(each))
    writeFileSync(path('i-go'), '')
    await jobs.until('i', 'Ready', 'Available')
    equal(lines(path('i')).filter(line => line !== 'done').length, 2)
  })
})
