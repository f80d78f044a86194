import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { type Run, subjectOf, type Tenant, type Worker, type WorkerPool } from '../../api/index.ts'
import type { DispatchAction } from './dispatch-action.ts'
import { DispatchCore } from './dispatch-core.ts'
import type { DispatchEvent } from './dispatch-event.ts'
import { epochMs, testPool, testRun, testTenant, testWorker } from './objects.testing.ts'

/** A core with a Tenant, a pool and a Worker that has the levels Process and Sandbox. */
function setUp({
  tenant = {},
  pool = {},
  worker,
}: {
  tenant?: Tenant['spec']
  pool?: Partial<WorkerPool['spec']>
  /** null: there is no Worker. */
  worker?: Partial<Worker['status']> | null
}) {
  let nowMs = 0
  const now = () => ({ wallMs: epochMs + nowMs, monotonicMs: nowMs })
  const core = new DispatchCore({ leaseDurationMs: 1e9 }, now())
  const observe = (...events: DispatchEvent[]) => events.forEach(event => void core.observe(event, now()))
  observe(
    { kind: 'PoolChanged', pool: testPool('default', { lifecycle: 'Warm', max: 9, ...pool }) },
    { kind: 'TenantChanged', tenant: testTenant('t', { namespaces: ['ns'], ...tenant }) },
    { kind: 'SubjectChanged', subject: subjectOf(testRun('r')), recordedEpoch: 0 },
  )
  if (worker !== null) {
    const status: Partial<Worker['status']> = { isolation: ['Process', 'Sandbox'], ...worker }
    observe({ kind: 'WorkerChanged', worker: testWorker('w', { lifecycle: 'Warm', slots: 9, status }) })
  }
  const decide = (atMs = 0): readonly DispatchAction[] => {
    nowMs = atMs
    return core.decide(now(), () => 0.5).actions
  }
  const assignmentOf = (actions: readonly DispatchAction[]) => actions.find(action => action.kind === 'AssignRun')
  /** What a Run that remains queued reports after a while. */
  const pendingOf = (actions: readonly DispatchAction[]) => {
    const report = actions.find(action => action.kind === 'PatchRunStatus')
    return `${report?.status.reason}: ${report?.status.message}`
  }
  const run = (stack: Partial<Run['spec']['stack']> = {}, name = 'r') => observe({ kind: 'RunChanged', run: testRun(name, { stack }) })
  return { core, observe, decide, assignmentOf, pendingOf, run, now }
}

test('a Run is assigned with what its Tenant and its pool require', () => {
  const { decide, assignmentOf, run } = setUp({ tenant: { minimumIsolation: 'Sandbox' }, pool: { maxResources: { memory: '1Gi' } } })
  run()
  deepEqual(assignmentOf(decide())?.policy, {
    minimumIsolation: 'Sandbox',
    allowedNetworks: ['Private', 'None'],
    maxResources: { memory: '1Gi' },
  })
})

test('a Run below the minimum of its Tenant is not assigned, and reports the field and the remedy', () => {
  const { decide, run, assignmentOf, pendingOf } = setUp({ tenant: { minimumIsolation: 'Sandbox' } })
  run({ isolation: { level: 'Process' } })
  const actions = [...decide(), ...decide(10_000)]
  equal(assignmentOf(actions), undefined)
  match(
    pendingOf(actions),
    /^PolicyViolation: spec\.isolation\.level: Process is weaker than Sandbox, which Tenant t requires .*set Sandbox/,
  )
})

for (const [level, starts] of [
  ['Process', 0],
  ['Sandbox', 1],
] as const) {
  test(`${starts === 0 ? 'no' : 'a'} worker is started for a Run of level ${level} in a Tenant that requires Sandbox`, () => {
    const { decide, run } = setUp({ tenant: { minimumIsolation: 'Sandbox' }, worker: null })
    run({ isolation: { level } })
    equal(decide().filter(action => action.kind === 'StartWorkers').length, starts)
  })
}

test('a Run that uses the network of the machine is assigned only if its pool allows it', () => {
  const stack = { isolation: { level: 'Sandbox', network: 'Host' } } as const
  const refused = setUp({})
  refused.run(stack)
  const actions = [...refused.decide(), ...refused.decide(10_000)]
  equal(refused.assignmentOf(actions), undefined)
  match(refused.pendingOf(actions), /^PolicyViolation: spec\.isolation\.network: Host is not allowed by WorkerPool default/)
  const allowed = setUp({ pool: { allowedNetworks: ['Host'] } })
  allowed.run(stack)
  deepEqual(allowed.assignmentOf(allowed.decide())?.policy, { allowedNetworks: ['Host'] })
})

test('a queued Run is judged by the policies of now: stricter ones keep it, laxer ones release it', () => {
  const { observe, decide, run, assignmentOf } = setUp({ tenant: { limits: { maxRunning: 0 } } })
  run({ isolation: { level: 'Process' } })
  const changeTenant = (generation: number, spec: Tenant['spec']) => {
    const tenant = testTenant('t', { namespaces: ['ns'], ...spec })
    observe({ kind: 'TenantChanged', tenant: { ...tenant, metadata: { ...tenant.metadata, generation } } })
  }
  equal(assignmentOf(decide()), undefined)
  changeTenant(2, { minimumIsolation: 'Sandbox' })
  equal(assignmentOf(decide(1_000)), undefined)
  changeTenant(3, { minimumIsolation: 'Process' })
  deepEqual(assignmentOf(decide(2_000))?.policy.minimumIsolation, 'Process')
})

test('a Run in a namespace that is not observed yet waits if its labels could put it into a Tenant with a minimum', () => {
  const namespaceSelector = { matchLabels: { team: 'a' } }
  const { observe, decide, run, assignmentOf } = setUp({ tenant: { namespaces: [], namespaceSelector, minimumIsolation: 'Sandbox' } })
  run()
  equal(assignmentOf(decide()), undefined)
  const metadata = { ...testPool('ns').metadata, labels: { team: 'a' } }
  observe({ kind: 'NamespaceChanged', namespace: { apiVersion: 'v1', kind: 'Namespace', metadata } })
  equal(assignmentOf(decide())?.policy.minimumIsolation, 'Sandbox')
})

test('a Run is not created with a worker if it violates a policy, and else with the policy', () => {
  const { core, decide, now } = setUp({ tenant: { minimumIsolation: 'Sandbox' } })
  decide()
  const place = (name: string, stack: Partial<Run['spec']['stack']>) =>
    core.placeNewRun({ namespace: 'ns', name, spec: testRun(name, { stack }).spec }, now(), () => 0.5)
  equal(place('a', { isolation: { level: 'Process' } }), undefined)
  deepEqual(place('b', {})?.policy, { minimumIsolation: 'Sandbox', allowedNetworks: ['Private', 'None'] })
})

test('a Run is assigned, or created, with the Tenant of its namespace and the UID of that Tenant', () => {
  const { core, decide, assignmentOf, run, now } = setUp({})
  run()
  const tenant = { name: 't', uid: testTenant('t').metadata.uid }
  deepEqual(assignmentOf(decide())?.tenant, tenant)
  deepEqual(core.placeNewRun({ namespace: 'ns', name: 'b', spec: testRun('b').spec }, now(), () => 0.5)?.tenant, tenant)
})

test('a Run in a namespace that only has the name of a Tenant is assigned without a Tenant', () => {
  const { observe, decide, assignmentOf, run } = setUp({ tenant: { namespaces: ['other'] } })
  observe({ kind: 'TenantChanged', tenant: testTenant('ns', { namespaces: ['other'] }) })
  run()
  const assignment = assignmentOf(decide())
  equal(assignment?.object.namespace, 'ns')
  equal(assignment?.tenant, undefined)
})

test('a Run in a namespace that a Tenant selects by its labels is assigned with that Tenant', () => {
  const { observe, decide, assignmentOf, run } = setUp({ tenant: { namespaces: [], namespaceSelector: { matchLabels: { team: 'a' } } } })
  const metadata = { ...testPool('ns').metadata, labels: { team: 'a' } }
  observe({ kind: 'NamespaceChanged', namespace: { apiVersion: 'v1', kind: 'Namespace', metadata } })
  run()
  equal(assignmentOf(decide())?.tenant?.name, 't')
})

test('a Run with network Private is not assigned to a worker without slirp4netns', () => {
  const { decide, run, assignmentOf, pendingOf } = setUp({ worker: { networks: ['None', 'Host'] } })
  run({ isolation: { level: 'Sandbox' } })
  const actions = [...decide(), ...decide(10_000)]
  equal(assignmentOf(actions), undefined)
  match(pendingOf(actions), /^NoMatchingWorker: worker w of pool default lacks network Private \(it offers None and Host; "oarlock doctor"/)
})

test('a Run without limits takes as much of its worker as its Tenant allows', () => {
  const { decide, run } = setUp({ tenant: { maxResources: { memory: '600Mi' } }, worker: { capacity: { memory: '1Gi' } } })
  for (const name of ['r1', 'r2']) run({}, name)
  equal(decide().filter(action => action.kind === 'AssignRun').length, 1)
})
