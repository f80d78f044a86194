import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { isWorkerOfRun, podExtraKeys, podOf, workerOf } from './worker-identity.ts'

const account = (namespace: string, name: string, extra?: Record<string, string[]>) => ({
  name: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
  extra,
})
const bound = (name: string, uid = 'u1') => ({ [podExtraKeys.name]: [name], [podExtraKeys.uid]: [uid] })
const worker = account('oarlock-system', 'oarlock-worker', bound('default-1'))

for (const [what, user, expected] of [
  ['a token of a worker Pod', worker, { name: 'default-1', namespace: 'oarlock-system', uid: 'u1' }],
  ['another account of worker Pods', account('shop', 'oarlock-worker-aws', bound('p')), { name: 'p', namespace: 'shop', uid: 'u1' }],
  ['a token without a Pod', account('oarlock-system', 'oarlock-worker', {}), undefined],
  ['two Pods', account('shop', 'oarlock-worker', { ...bound('p'), [podExtraKeys.name]: ['p', 'q'] }), undefined],
  ['the Pod of a component', account('oarlock-system', 'oarlock-controller', bound('p')), undefined],
  ['an account whose name only begins so', account('shop', 'oarlock-workers', bound('p')), undefined],
  ['a user who has the name and not the group', { ...worker, groups: ['system:authenticated'] }, undefined],
  ['the namespace of workers that joined', account('oarlock-workers', 'oarlock-worker', bound('p')), undefined],
] as const)
  test(`the Pod of a user: ${what}`, () => deepEqual(podOf(user), expected))

test('a Pod with a reserved name is no worker: its Lease would be that of a component', () => {
  equal(workerOf(account('oarlock-system', 'oarlock-worker', bound('oarlock-controller'))), undefined)
})

const joined = account('oarlock-workers', 'default-1')
for (const [what, user, workerPod, expected] of [
  ['the Pod that it records', worker, { namespace: 'oarlock-system', uid: 'u1' }, true],
  ['a Pod of which it records the namespace only', worker, { namespace: 'oarlock-system' }, true],
  ['a later Pod of the same name', worker, { namespace: 'oarlock-system', uid: 'u0' }, false],
  ['a Pod of the same name in another namespace', worker, { namespace: 'shop' }, false],
  ['a Pod, when the worker is none', worker, undefined, false],
  ['a worker that joined', joined, undefined, true],
  ['a worker that joined, when the worker is a Pod', joined, { namespace: 'oarlock-system' }, false],
] as const)
  test(`a Run is that of ${what}: ${expected}`, () => {
    equal(isWorkerOfRun(user, { spec: { workerName: 'default-1', ...(workerPod && { workerPod }) } }), expected)
  })
