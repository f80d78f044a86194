/** What a Run does after one whose CLI was killed, with the real CLI of `PULUMI_BIN` and the providers `command` and `random` next to it. */
import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { StackSpec } from '../../../api/index.ts'
import type { PendingOperation } from '../../../stores/pulumi/index.ts'
import type { EngineContext, PlanResult } from '../engine.ts'
import { createEngineHarness } from '../engine-harness.testing.ts'
import { createPulumiEngine } from './pulumi.ts'
import { StateInMemory } from './state-in-memory.ts'

const { PULUMI_BIN: pulumi } = process.env
const providers = ['command', 'random'].map(name => join(dirname(pulumi ?? ''), `pulumi-resource-${name}`))
const missing = providers.find(path => !existsSync(path))
const skip = pulumi === undefined ? 'PULUMI_BIN is not set' : missing !== undefined && `${missing} does not exist`
const options = { skip, timeout: 600_000 }

/** Runs of one Stack, whose state is in memory. */
async function createStack(t: TestContext, program: (root: string) => string) {
  const keys = { encrypt: async (values: readonly Uint8Array[]) => values, decrypt: async (values: readonly Uint8Array[]) => values }
  const state = new StateInMemory(keys as never, { version: 3, deployment: null }, 1)
  const files: Record<string, string> = {}
  const { nextRun, root } = await createEngineHarness(t, files)
  files['Pulumi.yaml'] = program(root)
  let operations: string[] = []
  const pendingOperations: EngineContext['pendingOperations'] = list => {
    operations = list.map(({ type, urn }) => `${type} ${urn.split('::').at(-1)}`)
  }
  const env = { PATH: `${dirname(pulumi ?? '')}:${process.env.PATH ?? ''}`, HOME: '/nonexistent' }
  const start = async (settings: StackSpec['pulumi'], more: Partial<EngineContext> = {}) => {
    const spec = { engine: 'pulumi' as const, ...(settings && { pulumi: settings }) }
    const context = await nextRun({ pulumiState: state, env, pendingOperations, spec, ...more })
    const engine = createPulumiEngine()
    const plan = () => engine.plan(context, { destroy: context.isDestroy })
    const apply = async (approved?: PlanResult) => await engine.apply(context, approved ?? (await plan()))
    const readPlan = async (text: string) => {
      await context.files.write(join(context.inputs, 'approved'), text)
      return await engine.readPlan(context, join(context.inputs, 'approved'))
    }
    return { prepare: () => engine.prepare(context), plan, readPlan, apply }
  }
  const names = () => (state.state.deployment?.resources ?? []).map(({ urn, id }) => `${urn.split('::').at(-1)} ${id ?? ''}`.trim())
  return { state, root, start, names, operations: () => operations }
}

test('an interrupted creation is reported, stops the next Run, and is cleared by a Destroy, which is interrupted too', options, async t => {
  // The provider is the parent of the command, and the CLI that of the provider.
  const killCli = 'read -r _ _ _ cli _ < /proc/$PPID/stat; kill -9 $cli; sleep 1'
  const { root, start, state, operations } = await createStack(t, directory => {
    const command = (name: string, create: string, remove: string) =>
      `  ${name}:\n    type: command:local:Command\n    properties: { create: "${create}", delete: "${remove}" }\n`
    const fast = command('fast', 'echo created fast >> $LEDGER', `echo deletes fast >> $LEDGER; mkdir $LEDGER.killed || exit 0; ${killCli}`)
    const slow = command('slow', `echo created slow >> $LEDGER; ${killCli}`, 'echo deletes slow >> $LEDGER')
    const program = `name: web\nruntime: yaml\nresources:\n${fast}${slow}    options: { dependsOn: ["\${fast}"] }\n`
    return program.replaceAll('$LEDGER', join(directory, 'ledger'))
  })
  const ledger = () => readFileSync(join(root, 'ledger'), 'utf8').trim().split('\n')
  const killed = await start(undefined)
  await killed.prepare()
  await rejects(killed.apply(), { reason: 'ApplyFailed' })
  deepEqual(operations(), ['creating slow'])
  const urn = state.state.deployment?.pending_operations?.[0]?.resource.urn ?? ''

  await rejects((await start(undefined)).prepare(), { reason: 'PendingCreates', retryable: false })
  const destruction = await start({ pendingCreates: 'Clear' }, { isDestroy: true })
  await destruction.prepare()
  await rejects(destruction.apply(), { reason: 'DestroyFailed' })
  deepEqual(operations(), ['deleting fast'])

  const next = await start({ pendingCreates: 'Import', importPendingCreates: [{ urn, id: 'was cleared' }] }, { isDestroy: true })
  await next.prepare()
  equal((await next.apply()).resources, 0)
  deepEqual(ledger(), ['created fast', 'created slow', 'deletes fast', 'deletes fast'])
  deepEqual([state.state.deployment?.pending_operations ?? [], operations()], [[], []])
})

test('an interrupted creation is imported by its ID, and is not created again', options, async t => {
  const { state, start, names, operations } = await createStack(t, () => {
    const resource = (name: string) => `  ${name}:\n    type: random:RandomString\n    properties: { length: 8 }\n`
    return `name: web\nruntime: yaml\nresources:\n${resource('first')}${resource('second')}`
  })
  const first = await start(undefined)
  await first.prepare()
  await first.apply()
  // As a CLI leaves it that was killed before the answer of the provider.
  const { deployment } = state.state
  const created = deployment?.resources?.find(({ urn }) => urn.endsWith('::second'))
  ok(deployment && created)
  const { id: _, outputs: __, ...resource } = created
  const pending: PendingOperation = { type: 'creating', resource }
  const resources = deployment.resources?.filter(({ urn }) => urn !== created.urn) ?? []
  state.state = { ...state.state, deployment: { ...deployment, resources, pending_operations: [pending] } }

  const wrong = await start({ pendingCreates: 'Import', importPendingCreates: [{ urn: `${created.urn}-other`, id: 'abcdefgh' }] })
  await rejects(wrong.prepare(), { reason: 'PendingCreates' })
  const settings = { pendingCreates: 'Import' as const, importPendingCreates: [{ urn: created.urn, id: 'abcdefgh' }] }
  const before = JSON.stringify(state.state)
  const planned = await start(settings, { mayWrite: false })
  await planned.prepare()
  const plan = await planned.plan()
  deepEqual([plan.add, plan.destroy], [0, 0], 'the plan of a Run that changes no state is one of what exists')
  equal(JSON.stringify(state.state), before)

  const next = await start(settings)
  await next.prepare()
  ok(names().includes('second abcdefgh'), names().join(', '))
  deepEqual(operations(), [])
  const approved = await next.readPlan(readFileSync(plan.file ?? '', 'utf8'))
  equal(approved.digest, plan.digest, 'a plan that was approved before the import is applied after it')
  equal((await next.apply(approved)).resources, 2)
  equal((await next.apply()).resources, 2)
  ok(names().includes('second abcdefgh'), names().join(', '))
  const destruction = await start(settings, { isDestroy: true })
  await destruction.prepare()
  equal((await destruction.apply()).resources, 0)
})
