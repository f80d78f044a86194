import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../api/index.ts'
import type { KubeObject } from '../../kubernetes/object/index.ts'
import { joinedGroup, poolGroup, workersGroup, workerUserName } from '../worker-identity.ts'
import { makeAuthorizer } from './authorize.ts'
import { namespaceDeletion, workerAdmission } from './worker-admission.ts'
import type { WorkerFacts } from './worker-facts.ts'

const local = { name: workerUserName('w1'), groups: [workersGroup, poolGroup('default')] }
const joined = { ...local, groups: [...local.groups, joinedGroup] }

const runOf = (stack: object, phase = 'Applying') =>
  ({
    metadata: { name: 'web-1', namespace: 'platform' },
    spec: { workerName: 'w1', stackRef: { name: 'web' }, stack: { engine: 'manifests', source: {}, ...stack } },
    status: { phase },
  }) as unknown as Run

const object = (name: string, stack?: string, more: object = {}) =>
  ({ metadata: { name, ...(stack && { annotations: { 'oarlock.dev/stack': stack } }) }, ...more }) as KubeObject
const stored: Record<string, KubeObject> = {
  'namespaces //platform': object('platform'),
  'namespaces //shop': object('shop'),
  'namespaces //made': object('made', 'platform/web'),
  'namespaces //inhabited': object('inhabited', 'platform/web'),
  'configmaps platform/own': object('own', 'platform/web'),
  'configmaps platform/of-api': object('of-api', 'platform/api'),
  'configmaps platform/unowned': object('unowned'),
  'configmaps made/of-api': object('of-api', 'made/api'),
  'roles.rbac.authorization.k8s.io platform/own': object('own', 'platform/web'),
  'rolebindings.rbac.authorization.k8s.io platform/unowned': object('unowned'),
  'resourcequotas platform/limit': object('limit'),
  'secrets platform/own': object('own', 'platform/web'),
  'secrets platform/token': object('token', 'platform/web', { type: 'kubernetes.io/service-account-token' }),
  'secrets platform/other': object('other'),
  'secrets platform/of-api': object('of-api', 'platform/api'),
  'secrets shop/known': object('known'),
  'clusterroles.rbac.authorization.k8s.io //own': object('own', 'platform/web'),
  'clusterroles.rbac.authorization.k8s.io //edit': object('edit'),
}
const factsWith = (run: Run): WorkerFacts => ({
  run: () => undefined,
  someRun: (_, meets) => meets(run),
  poolOf: () => undefined,
  labelsOf: () => ({}),
  hasNewCredential: () => false,
  registeredUid: () => undefined,
  recordRegistration: () => {},
  hasWorker: () => false,
  stacksIn: () => [],
  hasStacks: namespace => namespace === 'platform' || namespace === 'inhabited',
  stored: (table, namespace, name) => stored[`${table} ${namespace ?? '/'}/${name}`],
})
const may = (request: string, user = local, run = runOf({})): boolean => {
  const [verb = '', what = '', target = ''] = request.split(' ')
  if (/^\/(apis?|metrics)/.test(what)) return makeAuthorizer(factsWith(run))({ user, verb, group: '', resource: '', path: what }) === true
  const [group = '', resource = '', subresource] = what.split('/')
  const [namespace, name] = target.split('/')
  const place = { namespace: namespace || undefined, name: name || undefined, subresource }
  return makeAuthorizer(factsWith(run))({ user, verb, group, resource, ...place }) === true
}

for (const [request, isAllowed] of [
  ['get /apis/apps/v1', true],
  ['get /metrics', false],
  // In the namespace of the Stack, and in one that it created
  ['patch /configmaps platform/web', true],
  ['delete shop.example/backups platform/nightly', true],
  ['patch /configmaps made/web', true],
  ['patch /configmaps not-yet/web', true],
  ['get /configmaps shop/web', false],
  ['patch /configmaps shop/web', false],
  ['list /configmaps platform/', false],
  ['deletecollection /configmaps platform/', false],
  ['patch apps/deployments/scale platform/web', false],
  // Objects of others there: the engine takes over those that belong to no Stack.
  ['patch /configmaps platform/own', true],
  ['patch /configmaps platform/unowned', true],
  ['get /configmaps platform/of-api', true],
  ['update /configmaps platform/of-api', false],
  ['patch /configmaps platform/of-api', false],
  ['delete /configmaps platform/of-api', false],
  ['delete /configmaps made/of-api', false],
  ['delete rbac.authorization.k8s.io/roles platform/own', true],
  ['delete rbac.authorization.k8s.io/rolebindings platform/unowned', false],
  ['patch rbac.authorization.k8s.io/rolebindings platform/unowned', false],
  ['delete /resourcequotas platform/limit', false],
  // Objects of the cluster
  ['patch apiextensions.k8s.io/customresourcedefinitions /backups.shop.example', true],
  ['patch apiextensions.k8s.io/customresourcedefinitions /stacks.oarlock.dev', false],
  ['get apiextensions.k8s.io/customresourcedefinitions /stacks.oarlock.dev', true],
  ['patch /namespaces /new', true],
  ['patch /namespaces /platform', true],
  ['delete /namespaces /platform', false],
  ['delete /namespaces /made', true],
  ['delete /namespaces /inhabited', false],
  ['patch /namespaces /shop', false],
  ['delete /namespaces /oarlock-system', false],
  ['delete rbac.authorization.k8s.io/clusterroles /own', true],
  ['delete rbac.authorization.k8s.io/clusterroles /edit', false],
  ['patch rbac.authorization.k8s.io/clusterroles /oarlock:controller', false],
  ['patch rbac.authorization.k8s.io/roles platform/reader', true],
  ['delete rbac.authorization.k8s.io/rolebindings platform/oarlock-workers', false],
  ['create rbac.authorization.k8s.io/clusterrolebindings', false],
  ['get rbac.authorization.k8s.io/clusterrolebindings /oarlock:worker', true],
  // Secrets
  ['get /secrets platform/own', true],
  ['patch /secrets platform/new', true],
  ['get /secrets platform/other', false],
  ['patch /secrets platform/other', false],
  ['get /secrets platform/of-api', false],
  ['get /secrets platform/token', false],
  ['patch /secrets shop/new', false],
  // Both alike: the names of Secrets of other namespaces are not revealed.
  ['get /secrets shop/known', false],
  ['get /secrets shop/unknown', false],
  // Identities, and Oarlock's own kinds
  ['create /serviceaccounts/token platform/web', false],
  ['create authorization.k8s.io/subjectaccessreviews', false],
  ['patch oarlock.dev/stacks platform/web', false],
  ['get oarlock.dev/stacks platform/web', false],
  ['patch /configmaps oarlock-system/a', false],
] as [string, boolean][]) {
  test(`while its Run applies manifests, a local worker ${isAllowed ? 'may' : 'may not'}: ${request}`, () => equal(may(request), isAllowed))
}

for (const [name, user, run] of [
  ['a joined worker', joined, runOf({})],
  ['a worker whose Run has another engine', local, runOf({ engine: 'opentofu' })],
  ['a worker whose Run has a kubeconfig', local, runOf({ manifests: { kubeconfigSecretRef: { name: 'k' } } })],
  ['a worker whose Run has ended', local, runOf({}, 'Succeeded')],
] as const) {
  test(`${name} applies nothing, and uses no discovery by these rules`, () => {
    for (const request of ['patch /configmaps platform/web', 'create /secrets made/', 'patch /namespaces /new', 'get /apis/apps/v1'])
      equal(may(request, user, run), false, request)
  })
}

const request = {
  verb: 'create',
  kind: { group: '', plural: '' },
  namespace: 'platform',
  name: '',
  subresource: '',
  isDryRun: false,
  isAllowed: () => false,
  auditAnnotation: () => {},
}
const admits = (table: string, written: KubeObject, before?: KubeObject) =>
  workerAdmission(factsWith(runOf({}))).get(table)!({ ...request, user: local }, written, before) === undefined

test('a new Secret must be that of the Stack, and none that the server puts a token into', () => {
  equal(admits('secrets', object('new', 'platform/web')), true)
  equal(admits('secrets', object('new')), false)
  equal(admits('secrets', object('new', 'platform/web', { type: 'kubernetes.io/service-account-token' })), false)
  equal(admits('secrets', object('other', 'platform/web'), object('other')), false)
})

test('a Namespace of others cannot be annotated as one that the Stack created', () => {
  equal(admits('namespaces', object('new', 'platform/web')), true)
  equal(admits('namespaces', object('platform', 'platform/web'), object('platform')), true)
  equal(admits('namespaces', object('shop', 'platform/web'), object('shop')), false)
})

const namespaceWith = (name: string, metadata: object, stack = 'platform/web') => {
  const { metadata: own } = object(name, stack)
  return { metadata: { ...own, ...metadata } } as KubeObject
}

test('labels of a Namespace with Stacks, by which Tenants select it, cannot be changed; those of another that the Stack created can', () => {
  const labels = { team: 'a' }
  for (const name of ['platform', 'inhabited']) {
    equal(admits('namespaces', namespaceWith(name, { labels: {} }), namespaceWith(name, { labels })), false, name)
    equal(admits('namespaces', namespaceWith(name, { labels: { team: 'b' } }), namespaceWith(name, { labels })), false, name)
    equal(admits('namespaces', namespaceWith(name, { labels }), namespaceWith(name, { labels })), true, name)
  }
  equal(admits('namespaces', namespaceWith('made', { labels }), namespaceWith('made', {})), true)
  equal(admits('namespaces', namespaceWith('new', { labels })), true)
})

test('a Namespace cannot be given to another Stack, nor to an owner with which it is deleted', () => {
  equal(admits('namespaces', object('platform', 'shop/api'), object('platform')), false)
  equal(admits('namespaces', object('platform', 'platform/web'), object('platform', 'platform/api')), false)
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Namespace', name: 'x', uid: 'u' }]
  equal(admits('namespaces', namespaceWith('platform', { ownerReferences }), object('platform', 'platform/web')), false)
  equal(admits('namespaces', namespaceWith('new', { ownerReferences })), false)
})

test('a Namespace with Stacks cannot be deleted, even if the worker has annotated it as created by its own', () => {
  const deletes = (name: string, user = local) =>
    namespaceDeletion(factsWith(runOf({})))({ ...request, user }, object(name, 'platform/web')) === undefined
  equal(deletes('platform'), false)
  equal(deletes('inhabited'), false)
  equal(deletes('made'), true)
  equal(deletes('platform', { name: 'alice', groups: [] }), true)
})

test("a new definition cannot be of Oarlock's group", () => {
  const definition = (group: string) => object(`things.${group}`, 'platform/web', { spec: { group } })
  equal(admits('customresourcedefinitions.apiextensions.k8s.io', definition('shop.example')), true)
  equal(admits('customresourcedefinitions.apiextensions.k8s.io', definition('oarlock.dev')), false)
  equal(admits('customresourcedefinitions.apiextensions.k8s.io', definition('x.oarlock.dev')), false)
})
