import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { Registry } from 'prom-client'
import {
  annotations,
  isEnded,
  oarlockResources,
  type Run,
  type RunPhase,
  runResource,
  type Stack,
  type StackSpec,
  stackResource,
  systemNamespace,
  tenantResource,
  workerPoolResource,
  workerResource,
} from '../src/api/index.ts'
import { addDispatchController } from '../src/controllers/dispatch/index.ts'
import { addStackController } from '../src/controllers/stack/index.ts'
import {
  type Client,
  createClient,
  eventResource,
  installKinds,
  leaseResource,
  namespaceResource,
  secretResource,
} from '../src/kubernetes/client/index.ts'
import { type Log, Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { findCondition } from '../src/kubernetes/object/index.ts'
import { type ApiServer, startServer } from '../src/kubernetes/server/index.ts'
import { eventually } from './support/eventually.ts'
import { ScriptedWorkers, succeeds } from './support/scripted-workers.ts'

// Real API server, client and controllers; only the engines of the workers are scripted.
// Longer than this process, which has the workers too, stands still on a busy machine.
const leaseDurationMs = 6_000
const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-stack-dispatch-'))
const removedData: string[] = []
const revisions = new Map<string, string>()
let server: ApiServer
let client: Client
let workers: ScriptedWorkers
let manager: Manager
let registry: Registry

async function startControllers(): Promise<void> {
  registry = new Registry()
  manager = new Manager({ client, registry, log })
  const { placeNewRun } = addDispatchController(manager, { poolDriver: workers, leaseDurationMs, registry, log })
  addStackController(manager, {
    placeNewRun,
    resolveRevision: async stack => revisions.get(stack.metadata.name) ?? 'r1',
    checkSource: ({ spec }) =>
      spec.source.inline
        ? []
        : [{ reason: 'FieldValueRequired', field: 'spec.source', message: 'Required value: one of inline, path, git' }],
    removeStackData: async ({ uid }) => {
      removedData.push(uid)
    },
  })
  await manager.start()
}

before(async () => {
  server = await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } })
  client = await createClient({ kubeconfig: server.kubeconfigPath })
  await installKinds(client, oarlockResources)
  const namespaces = client.resource(namespaceResource)
  if (!(await namespaces.getOrUndefined(systemNamespace))) await namespaces.create({ metadata: { name: systemNamespace } })
  await client.resource(workerPoolResource).create({ metadata: { name: 'default' }, spec: { mode: 'Process', max: 8 } })
  workers = new ScriptedWorkers(client, 200)
  await startControllers()
})

beforeEach(() => {
  workers.script = () => succeeds()
  workers.startError = undefined
})

after(async () => {
  await manager?.stop({ graceMs: 2_000 })
  await workers?.close()
  await client?.close()
  await server?.close()
  rmSync(dataDir, { recursive: true, force: true })
})

// Warnings and errors that the controllers log.
const logged: string[] = []
const record = (fields: object, message: string) => {
  const { err, ...rest } = fields as { err?: Error }
  logged.push(`${message} ${JSON.stringify(rest)} ${err?.stack ?? ''}`)
  if (process.env.OARLOCK_TEST_LOG) console.error(logged.at(-1))
}
const log: Log = { ...silentLog, warn: record, error: record, child: () => log }

const stacks = () => client.resource(stackResource)
const runs = () => client.resource(runResource)
const source = { inline: { files: { 'main.tf': '' } } }

const make = async (name: string, spec: Partial<StackSpec> = {}) =>
  await stacks().create({ metadata: { name }, spec: { engine: 'command', command: { apply: ['true'] }, source, ...spec } })
const reasonOf = (stack: Stack) => findCondition(stack.status?.conditions, 'Ready')?.reason
const isReady = (stack: Stack) =>
  findCondition(stack.status?.conditions, 'Ready')?.status === 'True' && stack.status?.observedGeneration === stack.metadata.generation
const ready = async (name: string) => await eventually(async () => await stacks().get(name), isReady)
const until = async (name: string, reason: string) =>
  await eventually(
    async () => await stacks().get(name),
    stack => reasonOf(stack) === reason,
  )
const deleted = async (name: string) =>
  await eventually(
    async () => await stacks().getOrUndefined(name),
    stack => stack === undefined,
  )
const runsOf = async (name: string): Promise<Run[]> =>
  (await runs().list({ namespace: 'default' })).items
    .filter(run => run.spec.stackRef.name === name)
    .sort((a, b) => a.spec.epoch - b.spec.epoch)
const runHistory = async (name: string) => (await runsOf(name)).map(({ spec, status }) => `${spec.type} ${spec.reason} ${status?.phase}`)
const inPhase = async (name: string, phase: RunPhase) =>
  (
    await eventually(
      async () => await runsOf(name),
      all => all.some(run => run.status?.phase === phase),
    )
  ).find(run => run.status?.phase === phase)!

describe('from a Stack to Ready', () => {
  test('a Stack is applied, its outputs are stored, and its worker is deleted', async () => {
    workers.script = () => succeeds('o1', 3)
    await make('plain')
    const stack = await ready('plain')
    assert.deepEqual(await runHistory('plain'), ['Apply NewGeneration Succeeded'])
    assert.equal(findCondition(stack.status?.conditions, 'Ready')?.message, 'Applied: 3 added, 0 changed, 0 destroyed')
    assert.deepEqual(stack.status?.outputs, { value: 'o1' })
    assert.equal(stack.status?.resources, 3)
    await eventually(
      async () => (await client.resource(workerResource).list()).items.length,
      count => count === 0,
    )
    const events = await eventually(
      async () => await client.request({ method: 'GET', path: '/api/v1/namespaces/default/events' }).then(response => response.json()),
      list => JSON.stringify(list).includes('3 added'),
    )
    assert.ok(events)
    const metrics = await registry.metrics()
    assert.match(metrics, /oarlock_runs_total\{pool="default",tenant="default",type="Apply",phase="Succeeded"\} 1/)
    assert.match(metrics, /oarlock_runs_queued\{pool="default"\} 0/)
    assert.match(metrics, /oarlock_run_queue_seconds_count\{pool="default"\} 1/)
  })

  test('a Run in another namespace with the UID of the Stack is no Run of it', async () => {
    await make('victim')
    await ready('victim')
    const [run] = await runsOf('victim')
    const namespace = 'evil'
    await client.resource(namespaceResource).create({ metadata: { name: namespace } })
    // Counted as a Run of the Stack, it would make the Stack fail, and its epoch would be the last one.
    await runs().create({ metadata: { name: 'steal', namespace }, spec: { ...run!.spec, epoch: 99_999, workerName: 'w0' } })
    await runs().patchStatus('steal', { status: { phase: 'Failed', finishedAt: new Date().toISOString() } }, { namespace })
    await stacks().patch('victim', { spec: { priority: 1, command: { apply: ['true', '2'] } } }, { type: 'merge' })
    const stack = await ready('victim')
    assert.equal(stack.status?.lastRunNumber, 2)
    assert.deepEqual(await runHistory('victim'), ['Apply NewGeneration Succeeded', 'Apply NewGeneration Succeeded'])
    assert.equal((await runs().get('steal', { namespace })).spec.epoch, 99_999)
    await assert.rejects(
      runs().create({ metadata: { name: 'huge', namespace }, spec: { ...run!.spec, epoch: Number.MAX_SAFE_INTEGER } }),
      /spec\.epoch/,
    )
  })

  test('a Stack below the minimum of its Tenant is not run and shows why; its Run keeps what was required of it', async () => {
    const tenants = client.resource(tenantResource)
    const namespace = 'strict'
    await client.resource(namespaceResource).create({ metadata: { name: namespace } })
    await tenants.create({ metadata: { name: 'strict' }, spec: { namespaces: [namespace], minimumIsolation: 'Sandbox' } })
    await eventually(
      async () => await tenants.get('strict'),
      tenant => tenant.status?.observedGeneration === 1,
    )
    const spec = { engine: 'command', command: { apply: ['true'] }, source, isolation: { level: 'Process' } } as const
    await stacks().create({ metadata: { name: 'weak', namespace }, spec: { ...spec, command: { apply: ['true'] } } })
    const readyOf = async () => findCondition((await stacks().get('weak', { namespace })).status?.conditions, 'Ready')
    const shown = await eventually(readyOf, ready => /weaker/.test(ready?.message ?? ''))
    assert.equal(shown?.status, 'False')
    const problem = 'spec.isolation.level: Process is weaker than Sandbox, which Tenant strict requires (minimumIsolation)'
    assert.ok(shown?.message.includes(`${problem}; set Sandbox or remove the field`), shown?.message)
    const conditions = async () => (await stacks().get('weak', { namespace })).status?.conditions
    const stalled = findCondition(await conditions(), 'Stalled')
    assert.deepEqual([stalled?.status, stalled?.reason, stalled?.message], ['True', 'PolicyViolation', shown?.message])
    assert.equal(findCondition(await conditions(), 'Reconciling'), undefined)

    await tenants.patch('strict', { spec: { minimumIsolation: 'Process' } }, { type: 'merge' })
    await eventually(readyOf, ready => ready?.status === 'True')
    assert.equal(findCondition(await conditions(), 'Stalled'), undefined)
    const [run] = (await runs().list({ namespace })).items
    assert.deepEqual(run?.spec.policy, { minimumIsolation: 'Process', allowedNetworks: ['Private', 'None'] })
    for (const policy of [null, { allowedNetworks: ['Host'] }])
      await assert.rejects(
        runs().patch(run?.metadata.name ?? '', { spec: { policy } }, { type: 'merge', namespace }),
        /policy is immutable once the Run has a worker/,
      )
    const { uid } = (await tenants.get('strict')).metadata
    assert.deepEqual(run?.spec.tenant, { name: 'strict', uid })
    for (const tenant of [null, { name: 'strict', uid: 'another' }])
      await assert.rejects(
        runs().patch(run?.metadata.name ?? '', { spec: { tenant } }, { type: 'merge', namespace }),
        /tenant is immutable once the Run has a worker/,
      )
  })

  test('rejects networks that a Tenant or WorkerPool without a minimum isolation could not enforce', async () => {
    const allowedNetworks = ['None'] as 'None'[]
    const message = /allowedNetworks without Host requires minimumIsolation Sandbox or Pod/
    await assert.rejects(client.resource(tenantResource).create({ metadata: { name: 'open' }, spec: { allowedNetworks } }), message)
    const pools = client.resource(workerPoolResource)
    await assert.rejects(pools.create({ metadata: { name: 'open' }, spec: { mode: 'Process', allowedNetworks } }), message)
    const spec = { mode: 'External', allowedNetworks, minimumIsolation: 'Sandbox' } as const
    await pools.create({ metadata: { name: 'closed' }, spec: { ...spec, allowedNetworks } })
    await pools.delete('closed')
  })

  test('outputs are passed to dependents, and a changed output is applied downstream', async () => {
    let outputs = 'n1'
    workers.script = run => succeeds(run.spec.stackRef.name === 'network' ? outputs : undefined)
    await make('app', { variablesFrom: [{ stackRef: { name: 'network' } }] })
    await until('app', 'DependencyNotFound')
    await make('network')
    await ready('app')
    assert.ok(
      workers.accepted.findIndex(run => run.spec.stackRef.name === 'network') <
        workers.accepted.findIndex(run => run.spec.stackRef.name === 'app'),
    )
    outputs = 'n2'
    await stacks().patch('network', { spec: { variables: { a: 1 } } }, { type: 'merge' })
    await eventually(
      async () => (await runHistory('app')).join(),
      text => text === 'Apply NewGeneration Succeeded,Apply InputsChanged Succeeded',
    )
  })

  test('a failed Run is retried, a Stack with an invalid spec is Stalled, and a missing Secret is awaited', async () => {
    let tries = 0
    workers.script = run =>
      run.spec.stackRef.name === 'flaky' && ++tries < 3
        ? { status: { phase: 'Failed', reason: 'ApplyFailed', message: 'boom' } }
        : succeeds()
    await make('flaky', { retry: { initial: '50ms' } })
    await make('wrong', { source: {} })
    await make('secretive', { env: [{ name: 'TOKEN', secretKeyRef: { name: 'tokens', key: 'a' } }] })
    await ready('flaky')
    assert.deepEqual(await runHistory('flaky'), ['Apply NewGeneration Failed', 'Apply Retry Failed', 'Apply Retry Succeeded'])
    const wrong = await until('wrong', 'InvalidSpec')
    assert.equal(findCondition(wrong.status?.conditions, 'Stalled')?.message, 'spec.source: Required value: one of inline, path, git')
    const secretive = await until('secretive', 'InputNotFound')
    assert.match(
      findCondition(secretive.status?.conditions, 'Ready')!.message,
      /^spec.env\[0\].secretKeyRef.name: Secret "tokens" does not exist/,
    )
    await client.resource(secretResource).create({ metadata: { name: 'tokens' }, data: { a: 'eA==' } })
    await ready('secretive')
    await client.resource(secretResource).patch('tokens', { data: { a: 'eQ==' } }, { type: 'merge' })
    await eventually(
      async () => (await runHistory('secretive')).at(-1),
      text => text === 'Apply InputsChanged Succeeded',
    )
  })

  test('approval: the plan waits, another digest is void and reported, the current one is applied', async () => {
    workers.script = run => succeeds(undefined, run.spec.type === 'Plan' ? 2 : 2)
    await make('careful', { approval: 'Manual' })
    const waiting = await until('careful', 'AwaitingApproval')
    await stacks().patch('careful', { metadata: { annotations: { [annotations.approvedPlan]: 'sha256:other' } } }, { type: 'merge' })
    await eventually(
      async () => findCondition((await stacks().get('careful')).status?.conditions, 'AwaitingApproval')?.message,
      message => message?.startsWith('The approved plan sha256:other is outdated') ?? false,
    )
    await eventually(
      async () => (await client.resource(eventResource).list({ namespace: 'default' })).items,
      items => items.some(({ reason, involvedObject }) => reason === 'ApprovalVoid' && involvedObject.name === 'careful'),
    )
    const digest = waiting.status!.plan!.digest
    await stacks().patch('careful', { metadata: { annotations: { [annotations.approvedPlan]: digest } } }, { type: 'merge' })
    await ready('careful')
    assert.deepEqual(await runHistory('careful'), ['Plan NewGeneration Succeeded', 'Apply Approved Succeeded'])

    // The next plan has the same digest, and the annotation is still there: the approval was of the plan before.
    await stacks().patch('careful', { spec: { variables: { a: 1 } } }, { type: 'merge' })
    const again = await eventually(
      async () => await stacks().get('careful'),
      ({ status }) => status?.plan?.runName !== undefined && status.observedGeneration === 2,
    )
    assert.equal(again.status?.plan?.digest, digest)
    assert.equal(findCondition(again.status?.conditions, 'AwaitingApproval')?.status, 'True')
    // As a policy lets zoe do it; the time makes it a new approval.
    const approval = { [annotations.approvedBy]: 'zoe', [annotations.approvedAt]: 'again' }
    await stacks().patch('careful', { metadata: { annotations: approval } }, { type: 'merge' })
    await ready('careful')
    const { approvedPlan } = (await runsOf('careful')).at(-1)!.spec
    assert.deepEqual([approvedPlan?.user, approvedPlan?.digest], ['zoe', digest])
    assert.equal(Date.parse(approvedPlan?.expiresAt ?? '') - Date.parse(approvedPlan?.at ?? ''), 24 * 3_600_000)
  })

  test('a namespace that requires approval requires it of every Stack, from the moment on', async () => {
    workers.script = () => succeeds(undefined, 2)
    const namespace = 'guarded'
    await client.resource(namespaceResource).create({ metadata: { name: namespace } })
    const create = async (name: string) => await stacks().create({ metadata: { name, namespace }, spec: { engine: 'terraform', source } })
    const typesAndApprovals = async (name: string) => {
      const { items } = await client.resource(runResource).list({ namespace })
      return items.filter(({ spec }) => spec.stackRef.name === name).map(({ spec }) => [spec.type, spec.stack.approval])
    }
    const isReadyAs = (status: string, reason: string) => (stack: Stack) => {
      const condition = findCondition(stack.status?.conditions, 'Ready')
      return condition?.status === status && condition.reason === reason
    }
    await create('before')
    await eventually(async () => await stacks().get('before', { namespace }), isReadyAs('True', 'Applied'))
    const labels = { 'oarlock.dev/approval': 'Required' }
    await client.resource(namespaceResource).patch(namespace, { metadata: { labels } } as never, { type: 'merge' })
    // The label is in the cache of the controller when it has reached this Stack's namespace.
    const informer = manager.informer(namespaceResource)
    await eventually(
      async () => informer.get(namespace)?.metadata.labels?.['oarlock.dev/approval'],
      value => value === 'Required',
    )
    await create('after')
    await eventually(async () => await stacks().get('after', { namespace }), isReadyAs('False', 'AwaitingApproval'))
    assert.deepEqual(await typesAndApprovals('before'), [['Apply', 'Auto']])
    assert.deepEqual(await typesAndApprovals('after'), [['Plan', 'Manual']])
  })
})

describe('failures', () => {
  test('a worker crashes during an apply: its Run is Lost, and a new Run recovers without intervention', async () => {
    workers.script = run => (run.spec.epoch === 1 ? 'crash' : succeeds())
    await make('crashed')
    const lostRun = await inPhase('crashed', 'Applying')
    const startedMs = performance.now()
    const lost = await inPhase('crashed', 'Lost')
    const tookMs = performance.now() - startedMs
    assert.ok(tookMs > leaseDurationMs - 400, `invariant 2: declared lost after ${Math.round(tookMs)} ms of ${leaseDurationMs}`)
    assert.equal(lost.status?.reason, 'WorkerLost')
    await ready('crashed')
    const [, next] = await runsOf('crashed')
    assert.deepEqual([next?.spec.reason, next?.spec.recoveredFrom, next?.spec.epoch], ['RecoveredFrom', lostRun.metadata.name, 2])
    const worker = lostRun.spec.workerName!
    assert.equal(await client.resource(workerResource).getOrUndefined(worker), undefined)
    assert.equal(await client.resource(leaseResource).getOrUndefined(worker, { namespace: systemNamespace }), undefined)
  })

  test('workers that fail to start: the Run and the pool report the cause, and both recover', async () => {
    workers.startError = new Error('spawn node ENOENT')
    await make('stuck')
    const pending = await eventually(
      async () => (await runsOf('stuck'))[0],
      run => run?.status?.reason === 'WorkerStartFailed',
    )
    assert.match(pending!.status!.message!, /spawn node ENOENT/)
    await eventually(
      async () => findCondition((await client.resource(workerPoolResource).get('default')).status?.conditions, 'Ready')?.reason,
      reason => reason === 'CreateFailed',
    )
    workers.startError = undefined
    await ready('stuck')
    await eventually(
      async () => findCondition((await client.resource(workerPoolResource).get('default')).status?.conditions, 'Ready')?.reason,
      reason => reason === 'Ready',
    )
  })

  test('deleting an assigned Run cancels it first (invariant 1)', async () => {
    workers.script = run => (run.spec.epoch === 1 ? 'block' : succeeds())
    await make('deleted-run')
    const run = await inPhase('deleted-run', 'Applying')
    await runs().delete(run.metadata.name)
    await eventually(
      async () => await runs().getOrUndefined(run.metadata.name),
      one => one === undefined,
    )
    await ready('deleted-run')
    assert.deepEqual(await runHistory('deleted-run').then(lines => lines.slice(0, 1).map(line => line.split(' ')[0])), ['Apply'])
  })

  test('a queued Run is canceled immediately', async () => {
    await make('queued', { pool: 'nowhere' })
    const [run] = await eventually(
      async () => await runsOf('queued'),
      all => all[0]?.status?.reason === 'PoolNotFound',
    )
    await runs().patch(run!.metadata.name, { spec: { cancel: true } }, { type: 'merge' })
    const stack = await until('queued', 'RunCanceled')
    assert.ok(findCondition(stack.status?.conditions, 'Stalled'))
    assert.deepEqual(await runHistory('queued'), ['Apply NewGeneration Canceled'])
  })

  test('restarted controllers resume, and do not write to Stacks that have not changed', async () => {
    await make('steady')
    await ready('steady')
    workers.script = run => (run.spec.stackRef.name === 'midway' && run.spec.epoch === 1 ? 'block' : succeeds())
    await make('midway')
    const run = await inPhase('midway', 'Applying')
    await eventually(
      async () => (await stacks().get('midway')).status?.lastRun?.phase,
      phase => phase === 'Applying',
    )
    await manager.stop({ graceMs: 2_000 })
    const before = (await stacks().list({ namespace: 'default' })).items
    await startControllers()
    await runs().patch(run.metadata.name, { spec: { cancel: true } }, { type: 'merge' })
    await until('midway', 'RunCanceled')
    for (const { metadata } of before.filter(isReady)) {
      assert.equal(
        (await stacks().get(metadata.name)).metadata.resourceVersion,
        metadata.resourceVersion,
        `${metadata.name} was written to`,
      )
    }
  })
})

describe('deletion', () => {
  test('dependents are deleted first, then resources are destroyed, then the Stack is deleted', async () => {
    const { uid } = (await make('base')).metadata
    await make('tower', { dependsOn: [{ name: 'base' }] })
    await ready('tower')
    await stacks().delete('base')
    await until('base', 'DependentsExist')
    await stacks().delete('tower')
    await deleted('tower')
    await deleted('base')
    assert.ok(removedData.includes(uid))
    const destroyed = workers.accepted.filter(run => run.spec.type === 'Destroy').map(run => run.spec.stackRef.name)
    assert.deepEqual(destroyed, ['tower', 'base'])
    await eventually(
      async () => (await runsOf('base')).length,
      count => count === 0,
    )
  })

  test('deletion Orphan keeps all resources and the stored data', async () => {
    const { uid } = (await make('orphan', { deletion: 'Orphan' })).metadata
    await ready('orphan')
    await stacks().delete('orphan')
    await deleted('orphan')
    assert.ok(!removedData.includes(uid))
    assert.ok(!workers.accepted.some(run => run.spec.type === 'Destroy' && run.spec.stackRef.name === 'orphan'))
  })

  test('deletion waits for an Apply in progress', async () => {
    workers.script = run => (run.spec.type === 'Apply' ? 'block' : succeeds())
    await make('busy')
    const run = await inPhase('busy', 'Applying')
    await stacks().delete('busy')
    await until('busy', 'Deleting')
    assert.equal((await runs().get(run.metadata.name)).spec.cancel, undefined)
    await runs().patch(run.metadata.name, { spec: { cancel: true } }, { type: 'merge' })
    await deleted('busy')
  })
})

test('50 Stacks at the same time: every Run is assigned exactly once', async () => {
  const names = Array.from({ length: 50 }, (_, i) => `many-${i}`)
  const acceptedBefore = workers.accepted.length
  await Promise.all(names.map(name => make(name)))
  await eventually(
    async () =>
      (await stacks().list({ namespace: 'default' })).items.filter(stack => names.includes(stack.metadata.name) && isReady(stack)).length,
    count => count === 50,
    30_000,
  )
  const accepted = workers.accepted.slice(acceptedBefore).map(run => run.metadata.name)
  assert.equal(accepted.length, 50)
  assert.equal(new Set(accepted).size, 50)
  const all = (await runs().list({ namespace: 'default' })).items
  assert.ok(all.filter(run => names.includes(run.spec.stackRef.name)).every(isEnded))
})

test('no worker or Lease remains, and no reconcile failed', async () => {
  await eventually(
    async () => (await client.resource(workerResource).list()).items.length,
    count => count === 0,
  )
  const remaining = (await client.resource(leaseResource).list({ namespace: systemNamespace })).items
  assert.deepEqual(remaining, [])
  assert.deepEqual(
    logged.filter(text => text.startsWith('reconcile failed') || text.startsWith('pass failed')),
    [],
  )
})
