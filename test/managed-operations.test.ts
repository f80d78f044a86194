/** Operations of managed resources that workers execute with the provider's own program (issue 17). */
import { deepEqual, equal, match } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { isEnded, workerResource } from '../src/api/index.ts'
import { annotations, ResourceLocks } from '../src/controllers/managed/index.ts'
import { installKinds, secretResource } from '../src/kubernetes/client/index.ts'
import { findCondition } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { ManagedObjects } from './support/managed/managed-objects.ts'
import { dispatch, ledgerOf, startThingProvider, type ThingBody, thingOptions, thingResource, thingsOf } from './support/managed/thing.ts'
import { useOarlock } from './support/oarlock-fixture.ts'

describe('an operation of a managed resource that is dispatched', () => {
  const oarlock = useOarlock()
  const { stacks } = oarlock
  const namespace = 'default'
  let things: ManagedObjects<ThingBody>
  const root = mkdtempSync(join(tmpdir(), 'oarlock-operations-'))
  before(async () => {
    await installKinds(oarlock.client, [thingResource])
    things = new ManagedObjects(oarlock.client, thingResource)
  })
  after(() => rmSync(root, { recursive: true, force: true }))

  const newDirectory = () => mkdtempSync(join(root, 'd-'))
  const create = (name: string, forProvider: ThingBody['spec']['forProvider'], spec: object = {}) =>
    things.handle.create({ metadata: { name, namespace }, spec: { forProvider, ...spec } })
  const untilLedger = (directory: string, count: number) =>
    eventually(() => ledgerOf(directory).length >= count, `${count} lines of the ledger`, 40_000)
  const killWorkerOf = async (stack: string) => {
    const run = await stacks.untilRun(stack, 'its worker', each => each.spec.workerName !== undefined && !isEnded(each))
    const worker = await oarlock.client.resource(workerResource).get(run.spec.workerName ?? '')
    process.kill(worker.status?.pid ?? 0, 'SIGKILL')
    return run
  }

  test('creates with an assigned name, updates, and deletes, each as one Run', async () => {
    await using _ = await startThingProvider(oarlock.client)
    const directory = newDirectory()
    await create('a', { directory, size: 1 }, { writeConnectionSecretToRef: { name: 'thing-a-connection' } })
    const created = await things.until('a', 'Ready', 'Available')
    equal(created.metadata.annotations?.[annotations.externalName], 'a-0')
    deepEqual([created.status?.run?.phase, created.status?.atProvider], ['Succeeded', { size: 1 }])
    const secret = await oarlock.client.resource(secretResource).get('thing-a-connection', { namespace })
    equal(Buffer.from(secret.data?.password ?? '', 'base64').toString(), 'hidden-a-0')
    await things.patch('a', { spec: { forProvider: { size: 2 } } })
    await eventually(async () => (await things.get('a')).status?.atProvider?.size === 2, 'the update', 40_000)
    await things.until('a', 'Ready', 'Available')
    await things.handle.delete('a', { namespace })
    await things.untilGone('a')
    deepEqual(ledgerOf(directory), ['work a', 'work a', 'delete a'])
    deepEqual(thingsOf(directory), [])
    await stacks.untilDeleted('thing-a')
  })

  test('is only reported while its Run is active, also by a provider that started meanwhile', async () => {
    const first = await startThingProvider(oarlock.client)
    const directory = newDirectory()
    await create('b', { directory, size: 1, waitsFor: 'go' })
    await untilLedger(directory, 1)
    const active = await things.until('b', 'Ready', 'Creating', 'is Applying')
    equal(findCondition(active.status?.conditions, 'Synced')?.reason, 'ReconcileSuccess')
    await first.stop()
    await using _ = await startThingProvider(oarlock.client)
    await things.annotate('b', { [annotations.reconcileRequestedAt]: 'again' })
    await eventually(
      async () => (await things.get('b')).status?.lastHandledReconcileAt === 'again',
      'a reconcile by the new provider',
      40_000,
    )
    writeFileSync(join(directory, 'go'), '')
    await things.until('b', 'Ready', 'Available')
    deepEqual([ledgerOf(directory), thingsOf(directory).length], [['work b'], 1])
  })

  test('a creation whose worker was killed is not repeated; the message names its Run (guarantees 2 and 4)', async () => {
    await using _ = await startThingProvider(oarlock.client)
    const directory = newDirectory()
    await create('c', { directory, size: 1, waitsFor: 'go' })
    await untilLedger(directory, 1)
    const run = await killWorkerOf('thing-c')
    const thing = await things.until('c', 'Synced', 'ReconcileError', 'is not known')
    match(findCondition(thing.status?.conditions, 'Synced')?.message ?? '', new RegExp(`Run ${run.metadata.name}`))
    writeFileSync(join(directory, 'go'), '')
    equal(ledgerOf(directory).length, 1)
    await things.annotate('c', { [annotations.createPending]: null })
    await things.until('c', 'Ready', 'Available')
    equal(ledgerOf(directory).length, 2, 'a person has removed the mark')
  })

  test('a creation by a name that is known before is continued by another Run', async () => {
    await using _ = await startThingProvider(oarlock.client, { externalNames: 'metadata.name', hasDeterministicNames: true })
    const directory = newDirectory()
    await create('d', { directory, size: 1, waitsFor: 'go' })
    await untilLedger(directory, 1)
    await killWorkerOf('thing-d')
    writeFileSync(join(directory, 'go'), '')
    await things.until('d', 'Ready', 'Available')
    deepEqual(thingsOf(directory), ['d.thing'])
  })

  test('an error that had no effect is repeated with a delay; one with an unknown result is not', async () => {
    await using _ = await startThingProvider(oarlock.client)
    const directory = newDirectory()
    await create('e', { directory, size: 1, fails: 'known' })
    await things.until('e', 'Synced', 'ReconcileError', 'the quota is exhausted')
    writeFileSync(join(directory, 'e.ok'), '')
    await things.until('e', 'Ready', 'Available')
    equal(ledgerOf(directory).length, 2)
    await create('f', { directory, size: 1, fails: 'unknown' })
    const unknown = await things.until('f', 'Synced', 'ReconcileError', 'is not known')
    match(findCondition(unknown.status?.conditions, 'Synced')?.message ?? '', /the answer was lost/)
    equal(ledgerOf(directory).length, 3)
  })

  test('a Run that was canceled is not repeated until that is requested', async () => {
    const { observe } = thingOptions()
    let observations = 0
    const counted: typeof observe = (...args) => {
      observations++
      return observe(...args)
    }
    await using _ = await startThingProvider(oarlock.client, { observe: counted, pollIntervalMs: 200 })
    const directory = newDirectory()
    await create('g', { directory, size: 1 })
    await things.until('g', 'Ready', 'Available')
    await things.patch('g', { spec: { forProvider: { size: 2, waitsFor: 'go' } } })
    await untilLedger(directory, 2)
    const run = await stacks.untilRun('thing-g', 'the update', each => !isEnded(each))
    await oarlock.succeeds('cancel', run.metadata.name)
    await things.until('g', 'Synced', 'ReconcileError', '(Canceled)')
    writeFileSync(join(directory, 'go'), '')
    const untilPoll = observations + 4
    await eventually(() => observations >= untilPoll, 'three polls to end and one to begin')
    equal(ledgerOf(directory).length, 2, 'also not by a poll')
    await things.annotate('g', { [annotations.reconcileRequestedAt]: 'now' })
    await eventually(async () => (await things.get('g')).status?.atProvider?.size === 2, 'the update', 40_000)
    equal(ledgerOf(directory).length, 3)
  })

  test('a deletion waits for the active creation, and deletes what it made', async () => {
    await using _ = await startThingProvider(oarlock.client)
    const directory = newDirectory()
    await create('h', { directory, size: 1, waitsFor: 'go' })
    await untilLedger(directory, 1)
    await things.handle.delete('h', { namespace })
    await things.until('h', 'Ready', 'Deleting', 'create: Stack thing-h')
    writeFileSync(join(directory, 'go'), '')
    await things.untilGone('h')
    deepEqual([ledgerOf(directory), thingsOf(directory)], [['work h', 'delete h'], []])
  })

  test('policies and the pause hold for operations too', async () => {
    await using _ = await startThingProvider(oarlock.client)
    const directory = newDirectory()
    await create('i', { directory, size: 1 }, { managementPolicies: ['Observe', 'Create'] })
    await things.until('i', 'Ready', 'Available')
    await things.patch('i', { spec: { forProvider: { size: 2 } } })
    await things.until('i', 'Synced', 'ReconcileSuccess', 'does not permit an update')
    await things.handle.delete('i', { namespace })
    await things.untilGone('i')
    equal(thingsOf(directory).length, 1, 'the external resource is left')
    await create('j', { directory, size: 1 }, { managementPolicies: [] })
    await things.until('j', 'Synced', 'ReconcilePaused')
    equal(await stacks.stacks.getOrUndefined('thing-j', { namespace }), undefined)
    deepEqual(ledgerOf(directory), ['work i'])
  })

  test('operations that are not declared are called in the reconcile', async () => {
    await using _ = await startThingProvider(oarlock.client, { dispatch: { ...dispatch, operations: ['update'] } })
    const directory = newDirectory()
    await create('k', { directory, size: 1 })
    await things.until('k', 'Ready', 'Available')
    await things.patch('k', { spec: { forProvider: { size: 2 } } })
    await eventually(async () => (await things.get('k')).status?.atProvider?.size === 2, 'the update', 40_000)
    deepEqual(ledgerOf(directory), ['inline k', 'work k'])
  })

  for (const lock of ['shard', 'lease'] as const)
    test(`two replicas with lock ${lock}: each operation is started once, also when one takes over (guarantee 4)`, async () => {
      const times = { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 250 }
      const start = (identity: string) =>
        startThingProvider(
          oarlock.client,
          manager => ({
            lock: lock === 'shard' ? lock : new ResourceLocks(manager, { name: 'thing-locks', namespace, identity, ...times }),
          }),
          lock === 'shard' ? { shards: { name: 'things', namespace, slots: 2, ...times } } : {},
        )
      const first = await start('first')
      await using _ = await start('second')
      const directory = newDirectory()
      const names = [0, 1, 2, 3, 4, 5].map(number => `${lock}-${number}`)
      for (const name of names) await create(name, { directory, size: 1, waitsFor: 'go' })
      await untilLedger(directory, 1)
      await first.stop()
      writeFileSync(join(directory, 'go'), '')
      for (const name of names) await things.until(name, 'Ready', 'Available')
      deepEqual(
        ledgerOf(directory).sort(),
        names.map(name => `work ${name}`),
      )
      equal(thingsOf(directory).length, names.length)
    })
})
