import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { joinedGroup, workerOf, workersGroup, workerUserName } from '../worker-identity.ts'
import { makeAuthorizer } from './authorize.ts'

const authorize = makeAuthorizer({
  run: () => undefined,
  someRun: () => false,
  poolOf: () => undefined,
  labelsOf: () => ({}),
  hasNewCredential: () => true,
  registeredUid: () => undefined,
  recordRegistration: () => {},
  hasWorker: () => false,
  stored: () => undefined,
  stacksIn: () => [],
  hasStacks: () => false,
})
const admin = { name: 'admin', groups: ['system:masters', 'system:authenticated'] }
const worker = { name: workerUserName('w1'), groups: [workersGroup, 'system:authenticated'] }
const component = { name: workerUserName('oarlock-controller'), groups: [workersGroup, joinedGroup, 'system:authenticated'] }
const otherUser = { name: 'alice', groups: ['system:authenticated'] }
const impostor = { name: workerUserName('w1'), groups: ['system:authenticated'] }

for (const [name, user, expected] of [
  ['an administrator has every permission', admin, true],
  ['RBAC decides about another user', otherUser, undefined],
  ['RBAC decides about the name of a worker without its group', impostor, undefined],
  ['a worker has its own', worker, true],
  ['RBAC decides about a worker that is named like a component', component, undefined],
] as const) {
  test(name, () => {
    const { name } = user
    const own = name.slice(workerUserName('').length)
    equal(authorize({ user, verb: 'patch', group: 'oarlock.dev', resource: 'workers', name: own }), expected)
  })
}

test('no worker writes roles and bindings of Oarlock, nor bindings in the whole cluster', () => {
  const group = 'rbac.authorization.k8s.io'
  for (const [verb, resource, name] of [
    ['patch', 'clusterroles', 'oarlock:controller'],
    ['delete', 'rolebindings', 'oarlock-workers'],
    ['create', 'clusterrolebindings', 'any'],
  ] as const)
    equal(
      authorize({ user: worker, verb, group, resource, name }),
      'a worker cannot write a ClusterRoleBinding, nor a role or binding of Oarlock',
    )
})

test('workerOf() requires both name and group', () => {
  equal(workerOf(worker), 'w1')
  equal(workerOf(impostor), undefined)
  equal(workerOf(undefined), undefined)
  equal(workerOf(component), undefined)
})
