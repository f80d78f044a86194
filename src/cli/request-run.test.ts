import { equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { type Run, runResource, stackResource } from '../api/index.ts'
import { startTestServer } from '../kubernetes/testing/index.ts'
import { exitCodes } from './exit-codes.ts'
import { makeRun, makeStack } from './fleet/fleet.testing.ts'
import { expectNoPendingPlan, planText, whenEnded } from './request-run.ts'

test('the plan of a refresh is described as changes of the state, not of the resources', () => {
  const counts = { add: 0, change: 1, destroy: 2 }
  equal(planText(counts), '0 to add, 1 to change, 2 to destroy')
  equal(planText({ ...counts, mode: 'Destroy' }), '0 to add, 1 to change, 2 to destroy')
  equal(planText({ ...counts, mode: 'Refresh' }), '0 to add, 1 to change, 2 to remove, only in the state')
  equal(planText({ add: 0, change: 0, destroy: 0, mode: 'Refresh' }), 'no resources to change, only outputs or addresses')
})

test('the Run that supersedes another one is waited for, also if it is created later', async () => {
  await using api = await startTestServer({ kinds: [runResource] })
  const runs = api.client.resource(runResource)
  const create = async (epoch: number, status: NonNullable<Run['status']>) => {
    const { metadata, spec } = makeRun('app', epoch, 'Queued')
    await runs.create({ metadata: { name: metadata.name }, spec }, { namespace: 'default' })
    return await runs.patchStatus(metadata.name, { status }, { namespace: 'default' })
  }
  const later = makeRun('app', 2, 'Queued').metadata.name
  const first = await create(1, { phase: 'Canceled', reason: 'Superseded', supersededBy: later })
  const seen = Promise.withResolvers<void>()
  const waiting = whenEnded(api.client, first, 60_000, () => seen.resolve())
  await seen.promise
  // Long enough for a read that would find nothing.
  await setTimeout(100)
  await create(2, { phase: 'Succeeded' })
  equal((await waiting).metadata.name, later)
})

test('a Run reports a plan that awaits approval if it is its own, or has replaced its own', async () => {
  await using api = await startTestServer({ kinds: [stackResource] })
  const stacks = api.client.resource(stackResource)
  const created = await stacks.create({ metadata: { name: 'app' }, spec: makeStack('app').spec }, { namespace: 'default' })
  const plan = { digest: 'sha256:1', generation: 1, revision: 'r', inputsDigest: 'i', add: 1, change: 0, destroy: 0 }
  const awaitingPlanOf = async (runName: string) => {
    const condition = {
      type: 'AwaitingApproval',
      status: 'True' as const,
      reason: 'Pending',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    }
    const status = {
      lastRunNumber: 9,
      lastRun: { name: 'app-9', type: 'Plan', phase: 'Succeeded', reason: 'Requested' },
      conditions: [condition],
      plan: { ...plan, runName },
    }
    await stacks.patchStatus('app', { status }, { namespace: 'default' })
  }
  const run = (type: 'Plan' | 'Apply', changed: boolean): Run => {
    const { metadata, spec, ...rest } = makeRun('app', 2, 'Succeeded', { changed })
    const stackRef = { ...spec.stackRef, uid: created.metadata.uid }
    return { ...rest, metadata: { ...metadata, namespace: 'default' }, spec: { ...spec, type, stackRef } }
  }
  const own = run('Plan', true)
  await awaitingPlanOf(own.metadata.name)
  await rejects(expectNoPendingPlan(api.client, own, 10_000), { exitCode: exitCodes.awaitingApproval })
  await awaitingPlanOf('app-other')
  await rejects(expectNoPendingPlan(api.client, own, 10_000), { exitCode: exitCodes.awaitingApproval })
  await expectNoPendingPlan(api.client, run('Plan', false), 10_000)
  await expectNoPendingPlan(api.client, run('Apply', true), 10_000)
})
