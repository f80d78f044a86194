import { equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../api/index.ts'
import type { KubeObject } from '../../kubernetes/object/index.ts'
import { joinedGroup, poolGroup, workersGroup, workerUserName } from '../worker-identity.ts'
import { makeAuthorizer } from './authorize.ts'
import { workerAdmission } from './worker-admission.ts'
import type { WorkerFacts } from './worker-facts.ts'

const run = (name: string, worker: string, stack: object = {}, phase = 'Applying'): Run =>
  ({
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Run',
    metadata: { name, namespace: 'shop', uid: name, resourceVersion: '1', creationTimestamp: '2026-06-01T10:00:00Z' },
    spec: {
      workerName: worker,
      stackRef: { name: name.split('-')[0], uid: 'u', generation: 1 },
      stack: { engine: 'command', source: {}, ...stack },
    },
    status: { phase },
  }) as unknown as Run

const runs = [
  run('network-1', 'w1', { variablesFrom: [{ secretRef: { name: 'vars' } }, { configMapRef: { name: 'region' } }] }),
  run('db-1', 'w2'),
]
const facts: WorkerFacts = {
  run: (namespace: string | undefined, name: string | undefined) =>
    runs.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
  someRun: (worker, meets) => runs.some(each => each.spec.workerName === worker && meets(each)),
  poolOf: () => undefined,
  labelsOf: () => ({ gpu: 'a100' }),
  hasNewCredential: () => true,
  registeredUid: () => undefined,
  recordRegistration: () => {},
  hasWorker: () => false,
  stored: () => undefined,
  stacksIn: () => [],
  hasStacks: () => false,
}
const authorize = makeAuthorizer(facts)
const user = { name: workerUserName('w1'), groups: [workersGroup, joinedGroup, poolGroup('edge'), 'system:authenticated'] }
const local = { ...user, groups: user.groups.filter(each => each !== joinedGroup) }

/** `verb group/resource[/subresource] [namespace/name] [fieldSelector]` */
const may = (request: string, who = user, decide = authorize): boolean => {
  const [verb = '', what = '', target = '', fieldSelector] = request.split(' ')
  const [group = '', resource = '', subresource] = what.split('/')
  const [namespace, name] = target.split('/')
  const place = { namespace: namespace || undefined, name: name || undefined, subresource }
  return decide({ user: who, verb, group, resource, ...place, fieldSelector }) === true
}

for (const [request, isAllowed] of [
  // Its Runs
  ['watch oarlock.dev/runs / spec.workerName=w1', true],
  ['list oarlock.dev/runs / spec.workerName=w2', false],
  // Through a gateway, which excludes namespaces.
  ['watch oarlock.dev/runs / spec.workerName=w1,metadata.namespace!=default', true],
  ['list oarlock.dev/runs / spec.workerName!=w1', false],
  ['list oarlock.dev/runs / metadata.name!=x\\,spec.workerName=w1', false],
  ['list oarlock.dev/runs / spec.workerName=w1\\,x', false],
  ['list oarlock.dev/runs / spec.workerName', false],
  ['watch oarlock.dev/runs', false],
  ['list oarlock.dev/runs shop/', false],
  ['get oarlock.dev/runs shop/network-1', true],
  ['get oarlock.dev/runs shop/db-1', false],
  ['get oarlock.dev/runs shop/nowhere', false],
  ['patch oarlock.dev/runs/status shop/network-1', true],
  ['patch oarlock.dev/runs/status shop/db-1', false],
  ['patch oarlock.dev/runs shop/network-1', false],
  ['delete oarlock.dev/runs shop/network-1', false],
  // Its Worker and its Lease
  ['create oarlock.dev/workers', true],
  ['patch oarlock.dev/workers/status /w1', true],
  ['watch oarlock.dev/workers /w1', true],
  ['get oarlock.dev/workers /w2', false],
  ['list oarlock.dev/workers', false],
  ['delete oarlock.dev/workers /w2', false],
  ['deletecollection oarlock.dev/workers', false],
  ['create coordination.k8s.io/leases oarlock-system/', true],
  ['patch coordination.k8s.io/leases oarlock-system/w1', true],
  ['patch coordination.k8s.io/leases oarlock-system/w2', false],
  ['list coordination.k8s.io/leases oarlock-system/', false],
  ['create coordination.k8s.io/leases shop/', false],
  // What its Runs reference comes from the stores
  ['get /secrets shop/vars', false],
  ['get /secrets shop/network-outputs', false],
  ['update /secrets shop/network-outputs', false],
  ['create /secrets shop/', false],
  ['list /secrets shop/', false],
  ['watch /secrets', false],
  ['get /secrets oarlock-system/join-token-abc', false],
  ['get /configmaps shop/region', false],
  ['list /configmaps shop/', false],
  // Everything else is left to RBAC, which grants nothing by default
  ['get oarlock.dev/workerpools /edge', true],
  ['get oarlock.dev/workerpools /default', false],
  ['get oarlock.dev/stacks shop/network', false],
  ['create /serviceaccounts/token shop/default', false],
  ['create /events shop/', false],
  ['get /nodes', false],
  ['patch apps/deployments shop/web', false],
] as [string, boolean][]) {
  for (const [kind, who] of Object.entries({ joined: user, local }))
    test(`a ${kind} worker ${isAllowed ? 'may' : 'may not'}: ${request}`, () => equal(may(request, who), isAllowed))
}

test('a worker whose Worker was deleted can register no other one, and finishes its Runs', () => {
  const ended = makeAuthorizer({ ...facts, hasNewCredential: () => false })
  for (const [request, isAllowed] of [
    ['create oarlock.dev/workers', false],
    ['create coordination.k8s.io/leases oarlock-system/', false],
    ['patch coordination.k8s.io/leases oarlock-system/w1', true],
    ['patch oarlock.dev/runs/status shop/network-1', true],
  ] as const)
    for (const who of [user, local]) equal(may(request, who, ended), isAllowed, request)
})

const guards = workerAdmission(facts)
const place = {
  verb: 'create',
  kind: { group: '', plural: '' },
  namespace: 'shop',
  name: '',
  subresource: '',
  isDryRun: false,
  isAllowed: () => false,
  auditAnnotation: () => {},
}
const object = (name: string, rest: object = {}) => ({ metadata: { name }, ...rest }) as unknown as KubeObject
const passes = (table: string, written: KubeObject, who = user, before?: KubeObject) =>
  guards.get(table)?.({ ...place, user: who }, written, before) === undefined
const inSystem = (table: string, written: KubeObject, who: typeof user) =>
  guards.get(table)?.({ ...place, namespace: 'oarlock-system', user: who }, written, undefined) === undefined
const worker = (name: string, pool: string, own: object = { gpu: 'a100' }) =>
  ({ metadata: { name, labels: { 'oarlock.dev/pool': pool, ...own } }, spec: { pool } }) as unknown as KubeObject

test('can only write objects with its own name and pool, and no Secrets', () => {
  for (const who of [user, local]) checkOwn(who)
})

function checkOwn(who: typeof user): void {
  equal(passes('workers.oarlock.dev', worker('w1', 'edge'), who), true)
  equal(passes('workers.oarlock.dev', worker('w2', 'edge'), who), false)
  equal(passes('workers.oarlock.dev', worker('w1', 'default'), who), false)
  equal(inSystem('leases.coordination.k8s.io', object('w1'), who), true)
  equal(inSystem('leases.coordination.k8s.io', object('oarlock-controllers'), who), false)
  for (const type of ['oarlock.dev/outputs', 'Opaque', 'kubernetes.io/service-account-token'])
    equal(passes('secrets', object('network-outputs', { type }), who), false)
}

test('must keep the labels that it joined with; an administrator can change them', () => {
  for (const own of [{}, { gpu: 'h100' }, { gpu: 'a100', zone: 'west' }])
    equal(passes('workers.oarlock.dev', worker('w1', 'edge', own)), false)
  const given = worker('w1', 'edge', { gpu: 'a100', rack: '7' })
  equal(passes('workers.oarlock.dev', given, user, given), true)
  equal(passes('workers.oarlock.dev', worker('w1', 'edge'), user, given), false)
  const admin = { name: 'admin', groups: ['system:masters'] }
  equal(passes('workers.oarlock.dev', given, admin, worker('w1', 'edge')), true)
})

test('adds the labels that it joined with to the Worker that requested its start, and no others', () => {
  const request = { ...worker('w1', 'edge', { rack: '7' }), spec: { pool: 'edge', start: true } } as unknown as KubeObject
  equal(passes('workers.oarlock.dev', worker('w1', 'edge', { gpu: 'a100', rack: '7' }), user, request), true)
  for (const own of [{ rack: '7' }, { gpu: 'a100' }, { gpu: 'a100', rack: '7', zone: 'west' }])
    equal(passes('workers.oarlock.dev', worker('w1', 'edge', own), user, request), false)
  const registered = { ...request, status: { phase: 'Ready' } } as unknown as KubeObject
  equal(passes('workers.oarlock.dev', worker('w1', 'edge', { gpu: 'a100', rack: '7' }), user, registered), false)
})

test('cannot create its Worker if the record of its labels is malformed, but can update the Worker', () => {
  const malformed = workerAdmission({ ...facts, poolOf: () => undefined, labelsOf: () => undefined }).get('workers.oarlock.dev')!
  const admit = (written: KubeObject, before?: KubeObject) => malformed({ ...place, user }, written, before)
  for (const own of [{}, { gpu: 'a100' }]) match(String(admit(worker('w1', 'edge', own))), /labels of worker w1 are malformed/)
  equal(admit(worker('w1', 'edge'), worker('w1', 'edge')), undefined)
})

test('cannot undo a drain', () => {
  const drained = { ...worker('w1', 'edge'), spec: { pool: 'edge', drain: true } } as unknown as KubeObject
  equal(passes('workers.oarlock.dev', worker('w1', 'edge'), user, drained), false)
  equal(passes('workers.oarlock.dev', drained, user, drained), true)
  equal(passes('workers.oarlock.dev', worker('w1', 'edge'), { name: 'admin', groups: ['system:masters'] }, drained), true)
})

test('no worker can request the start of a worker', () => {
  const started = (before?: object) =>
    ({ ...worker('w1', 'edge'), spec: { pool: 'edge', start: true }, ...before }) as unknown as KubeObject
  for (const who of [user, local]) {
    equal(passes('workers.oarlock.dev', started(), who), false)
    equal(passes('workers.oarlock.dev', started(), who, started({ status: { phase: 'Ready' } })), true)
  }
})

test('does not restrict other users', () => {
  const admin = { name: 'admin', groups: ['system:masters'] }
  equal(passes('secrets', object('x', { type: 'Opaque' }), admin), true)
  equal(passes('workers.oarlock.dev', object('w9', { spec: { pool: 'default', start: true } }), admin), true)
})
