/** How many writes the stack controller makes for a change of a Stack: its part of the 5 API writes per Run over all processes. */
import { deepEqual } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isEnded, type RunStatus, type StackSpec } from '../src/api/index.ts'
import { addStackController } from '../src/controllers/stack/index.ts'
import { type Client, eventResource } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { rfc3339 } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { condition, isReady, StackFixture } from './support/stacks.ts'
import { WriteCounter } from './support/write-counter.ts'

const user = 'stack-controller'
let counter: WriteCounter
let client: Client
let manager: Manager
let fixture: StackFixture

before(async () => {
  counter = await WriteCounter.start([user])
  client = counter.client
  manager = new Manager({ client: await counter.clientOf(user), log: silentLog })
  addStackController(manager, { resolveRevision: async () => 'r1', checkSource: () => [] })
  await manager.start()
  fixture = new StackFixture(client)
})
after(async () => {
  await manager?.stop({ graceMs: 2_000 })
  await counter?.close()
})

const spec: StackSpec = { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { f: '' } } }, historyLimit: 1 }

/** Acts as the dispatcher and the worker: executes the active Run, and resolves when it has ended. */
async function execute(result: RunStatus): Promise<void> {
  const { name } = (await eventually(async () => (await fixture.runsOf('app')).find(run => !isEnded(run)), 'a Run is created'))!.metadata
  const startedAt = rfc3339(Date.now())
  await fixture.runs.patch(name, { spec: { workerName: 'w1' } }, { type: 'merge' })
  for (const phase of ['Preparing', 'Applying']) await fixture.runs.patchStatus(name, { status: { phase, startedAt } })
  await fixture.runs.patchStatus(name, { status: { ...result, finishedAt: startedAt } })
}

test('a change of a Stack costs one Run, one write of the status, the deletion of the oldest Run, and no Event', async () => {
  await fixture.create('app', { ...spec, variables: { change: 1 } })
  for (let change = 1; change <= 3; change++) {
    if (change > 1) await fixture.patch('app', { spec: { variables: { change } } })
    await execute({ phase: 'Succeeded', plan: { digest: `sha256:${change}`, add: 1, change: 0, destroy: 0 }, changed: true })
    await fixture.until('app', 'Ready', isReady)
    await eventually(async () => (await fixture.runsOf('app')).length === 1, 'the previous Run is deleted')
    if (change === 2) counter.writes.length = 0
  }
  deepEqual(counter.writes.toSorted(), ['create runs', 'delete runs', 'patch stacks/status'])

  // Events are written in the order of their causes: when that of a failure is there, no earlier one is still to come.
  await fixture.patch('app', { spec: { variables: { change: 4 } } })
  await execute({ phase: 'Failed', reason: 'ApplyFailed', message: 'boom', retryable: false })
  await fixture.until('app', 'Stalled', stack => condition(stack, 'Stalled')?.status === 'True')
  const events = async () => (await client.resource(eventResource).list({ namespace: 'default' })).items.map(({ reason }) => reason)
  await eventually(async () => (await events()).includes('ApplyFailed'), 'the Event of the failure is written')
  deepEqual((await events()).toSorted(), ['Applied', 'ApplyFailed', 'RunCreated'])
})
