import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { joinedGroup, workerOf, workersGroup, workerUserName } from '../worker-identity.ts'
import { makeAuthorizer } from './authorize.ts'

const authorize = makeAuthorizer({
  assignedTo: (namespace, name) => (`${namespace}/${name}` === 'shop/of-w2' ? 'w2' : undefined),
  run: () => undefined,
  runsOf: () => [],
  poolOf: () => undefined,
  labelsOf: () => ({}),
})
const admin = { name: 'admin', groups: ['system:masters', 'system:authenticated'] }
const worker = { name: workerUserName('w1'), groups: [workersGroup, 'system:authenticated'] }
const component = { name: workerUserName('oarlock-controller'), groups: [workersGroup, joinedGroup, 'system:authenticated'] }
const otherUser = { name: 'alice', groups: ['system:authenticated'] }
const impostor = { name: workerUserName('w1'), groups: ['system:authenticated'] }

type Case = [name: string, user: typeof admin, request: string, allowed: boolean]
/** `verb group/resource[/subresource] [namespace/name]`, or `verb PATH`. */
const cases: Case[] = [
  ['an administrator has every permission', admin, 'delete oarlock.dev/stacks shop/network', true],
  ['another user has no permission', otherUser, 'get oarlock.dev/stacks shop/network', false],
  ['the name of a worker without its group has no permission', impostor, 'get oarlock.dev/runs shop/a', false],
  ['a worker watches Runs', worker, 'watch oarlock.dev/runs', true],
  ['a worker patches the status of its Run', worker, 'patch oarlock.dev/runs/status shop/a', true],
  ['a worker does not patch the status of another Run', worker, 'patch oarlock.dev/runs/status shop/of-w2', false],
  ['a worker does not assign Runs', worker, 'patch oarlock.dev/runs shop/a', false],
  ['a worker does not create Runs', worker, 'create oarlock.dev/runs shop/', false],
  ['a worker does not change Stacks', worker, 'patch oarlock.dev/stacks shop/a', false],
  ['a worker does not change a Stack’s status', worker, 'patch oarlock.dev/stacks/status shop/a', false],
  ['a worker patches the status of its own Worker', worker, 'patch oarlock.dev/workers/status /w1', true],
  ['a worker does not delete other Workers', worker, 'delete oarlock.dev/workers /w2', false],
  ['a worker renews its Lease', worker, 'patch coordination.k8s.io/leases oarlock-system/w1', true],
  ['a worker does not patch other Leases', worker, 'patch coordination.k8s.io/leases oarlock-system/w2', false],
  ['a worker reads a Secret by name', worker, 'get /secrets shop/credentials', true],
  ['a worker does not list Secrets', worker, 'list /secrets shop/', false],
  ['a worker writes outputs', worker, 'patch /secrets shop/network-outputs', true],
  ['a worker applies manifests', worker, 'patch /configmaps platform/web', true],
  ['a worker deletes applied objects', worker, 'delete shop.example/backups platform/nightly', true],
  ['a worker does not delete in bulk', worker, 'deletecollection /configmaps platform/', false],
  [
    'a worker applies CustomResourceDefinitions',
    worker,
    'patch apiextensions.k8s.io/customresourcedefinitions /backups.shop.example',
    true,
  ],
  [
    'a worker does not change the definitions of Oarlock',
    worker,
    'patch apiextensions.k8s.io/customresourcedefinitions /stacks.oarlock.dev',
    false,
  ],
  ['a worker writes nothing else in oarlock-system', worker, 'patch /configmaps oarlock-system/a', false],
  ['a worker does not delete oarlock-system', worker, 'delete /namespaces /oarlock-system', false],
  ['a worker applies roles', worker, 'patch rbac.authorization.k8s.io/roles shop/reader', true],
  ['a worker does not change the roles of Oarlock', worker, 'patch rbac.authorization.k8s.io/clusterroles /oarlock:controller', false],
  ['a worker does not delete the bindings of Oarlock', worker, 'delete rbac.authorization.k8s.io/rolebindings shop/oarlock-workers', false],
  ['a worker does not write bindings in the cluster', worker, 'create rbac.authorization.k8s.io/clusterrolebindings', false],
  ['a worker reads bindings', worker, 'get rbac.authorization.k8s.io/clusterrolebindings /oarlock:worker', true],
  [
    'a worker named like a component has no permission',
    component,
    'patch coordination.k8s.io/leases oarlock-system/oarlock-controller',
    false,
  ],
  ['a worker uses discovery', worker, 'get /apis/apps/v1', true],
  ['a worker uses no other path', worker, 'get /metrics', false],
]

for (const [name, user, request, allowed] of cases) {
  test(name, () => equal(authorize({ user, ...parse(request) }) === true, allowed))
}

test('workerOf() requires both name and group', () => {
  equal(workerOf(worker), 'w1')
  equal(workerOf(impostor), undefined)
  equal(workerOf(undefined), undefined)
  equal(workerOf(component), undefined)
})

function parse(request: string) {
  const [verb = '', what = '', target = ''] = request.split(' ')
  if (/^\/(apis?|metrics)/.test(what)) return { verb, group: '', resource: '', path: what }
  const [group = '', resource = '', subresource] = what.split('/')
  const [namespace, name] = target.split('/')
  return { verb, group, resource, subresource, namespace: namespace || undefined, name: name || undefined }
}
