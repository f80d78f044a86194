import { equal, match, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, nothingToDestroy, type Stack, stackResource } from '../../api/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { exitCodes } from '../exit-codes.ts'
import { makeStack } from '../fleet/fleet.testing.ts'
import { executeDestruction } from './execute-destruction.ts'

const namespace = 'default'
const noWait = { wait: false, timeoutMs: 10_000 }

/** Runs `work` with the Stack app, which keeps its resources and, with a finalizer, its object. */
async function withStack(work: (fixture: Awaited<ReturnType<typeof makeFixture>>) => Promise<void>): Promise<void> {
  await using api = await startTestServer({ kinds: [stackResource] })
  await work(await makeFixture(api.client))
}

async function makeFixture(client: Awaited<ReturnType<typeof startTestServer>>['client']) {
  const stacks = client.resource(stackResource)
  const create = async () =>
    (await stacks.create(
      { metadata: { name: 'app', finalizers: ['example.com/kept'] }, spec: { ...makeStack('app').spec, deletion: 'Orphan' } },
      { namespace },
    )) as Stack
  return { client, stacks, create, shown: await create() }
}

test('oarlock destroy confirms what was shown, also if annotations and the status have changed since', () =>
  withStack(async ({ client, stacks, shown }) => {
    await stacks.patch('app', { metadata: { annotations: { [annotations.destroySource]: 'Current' } } } as object, {
      type: 'merge',
      namespace,
    })
    await stacks.patchStatus('app', { status: { resources: 3 } }, { namespace })
    await executeDestruction(client, { stack: shown, plan: undefined, confirmed: nothingToDestroy }, noWait)
    const { metadata, spec } = await stacks.get('app', { namespace })
    match(metadata.annotations?.[annotations.destroyPlan] ?? '', /^none@/)
    equal(spec.deletion, 'Destroy')
    equal(metadata.deletionTimestamp !== undefined, true)
  }))

const hasChanged = {
  message: 'stack/app has changed since its destruction was shown: nothing is destroyed',
  exitCode: exitCodes.rejected,
  hint: 'show and confirm what would be destroyed now: oarlock destroy app -n default',
}

test('oarlock destroy changes nothing of a Stack whose spec has changed since it was shown', () =>
  withStack(async ({ client, stacks, shown }) => {
    await stacks.patch('app', { spec: { deletion: 'Orphan', suspend: true } }, { type: 'merge', namespace })
    await rejects(executeDestruction(client, { stack: shown, plan: undefined, confirmed: nothingToDestroy }, noWait), hasChanged)
    const { metadata, spec } = await stacks.get('app', { namespace })
    equal(spec.deletion, 'Orphan')
    equal(metadata.deletionTimestamp, undefined)
  }))

test('oarlock destroy changes nothing of a Stack that was created again with the name of the one that was shown', () =>
  withStack(async ({ client, stacks, shown, create }) => {
    await stacks.patch('app', { metadata: { finalizers: null } } as object, { type: 'merge', namespace })
    await stacks.delete('app', { namespace })
    await create()
    await rejects(executeDestruction(client, { stack: shown, plan: undefined, confirmed: nothingToDestroy }, noWait), hasChanged)
    const { metadata, spec } = await stacks.get('app', { namespace })
    equal(spec.deletion, 'Orphan')
    equal(metadata.annotations?.[annotations.destroyPlan], undefined)
    equal(metadata.deletionTimestamp, undefined)
  }))

test('during a deletion another plan than the one that was shown is not confirmed', () =>
  withStack(async ({ client, stacks }) => {
    await stacks.delete('app', { namespace })
    const lastTransitionTime = '2026-06-01T10:00:00Z'
    const plan = { digest: 'sha256:2', runName: 'app-2', generation: 2, revision: 'r', inputsDigest: 'i', add: 0, change: 0, destroy: 1 }
    const conditions = [
      { type: 'AwaitingApproval', status: 'True' as const, reason: 'ConfirmationRequired', message: '', lastTransitionTime },
    ]
    const deleting = (await stacks.patchStatus('app', { status: { plan, conditions } }, { namespace })) as Stack
    const destruction = (digest: string) => ({ stack: deleting, plan: undefined, confirmed: digest })
    await rejects(executeDestruction(client, destruction('sha256:1'), noWait), hasChanged)
    await executeDestruction(client, destruction('sha256:2'), noWait)
    match((await stacks.get('app', { namespace })).metadata.annotations?.[annotations.destroyPlan] ?? '', /^sha256:2@/)
  }))
