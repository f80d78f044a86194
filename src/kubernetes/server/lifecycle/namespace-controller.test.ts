import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Condition, KubeObject } from '../../object/index.ts'
import { startTestServer, type TestServer } from '../server.testing.ts'
import { namespaceConditions } from './namespace-conditions.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server.close())

const formatCondition = ({ type, status, reason, message }: Condition) => `${type}=${status} ${reason}: ${message}`

test('the conditions of a namespace report the remaining content as in Kubernetes', () => {
  const nothing = { resources: new Map(), finalizers: new Map(), failures: [] }
  const first = namespaceConditions(undefined, nothing, 0)
  assert.deepEqual(first.map(formatCondition), [
    'NamespaceDeletionDiscoveryFailure=False ResourcesDiscovered: All resources successfully discovered',
    'NamespaceDeletionGroupVersionParsingFailure=False ParsedGroupVersions: All legacy kube types successfully parsed',
    'NamespaceDeletionContentFailure=False ContentDeleted: All content successfully deleted, may be waiting on finalization',
    'NamespaceContentRemaining=False ContentRemoved: All content successfully removed',
    'NamespaceFinalizersRemaining=False ContentHasNoFinalizers: All content-preserving finalizers finished',
  ])
  const resources = new Map([
    ['secrets.', 2],
    ['deployments.apps', 1],
  ])
  const next = namespaceConditions(first, { resources, finalizers: new Map([['example.com/hold', 3]]), failures: ['b', 'a'] }, 5_000)
  assert.deepEqual(next.slice(2).map(formatCondition), [
    'NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 2 remaining: a, b',
    'NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: deployments.apps has 1 resource instances, secrets. has 2 resource instances',
    'NamespaceFinalizersRemaining=True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/hold in 3 resource instances',
  ])
  assert.deepEqual(
    next.map(({ lastTransitionTime }) => lastTransitionTime.slice(17, 19)),
    ['00', '00', '05', '05', '05'],
  )
})

test('content without finalizers is deleted immediately, the rest is reported, and the namespace is deleted when it is empty', async () => {
  const path = '/api/v1/namespaces/going'
  await server.call('/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'going' } } })
  const make = (name: string, finalizers?: string[]) =>
    server.call(`${path}/configmaps`, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, finalizers } } })
  await make('free')
  await make('held', ['example.com/hold'])
  await server.call(path, { method: 'DELETE' })
  const events = await server.watch(`/api/v1/namespaces?watch=true&fieldSelector=metadata.name=going`)
  const remaining = (namespace: KubeObject) => {
    const { conditions = [] } = namespace.status as { conditions?: Condition[] }
    return conditions.filter(({ status }) => status === 'True').map(({ message }) => message)
  }
  const desired = [
    'Some resources are remaining: configmaps. has 1 resource instances',
    'Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
  ]
  for (;;) {
    const event = await events.next()
    assert.ok(event && event.type !== 'DELETED')
    if (remaining(event.object as KubeObject).join() === desired.join()) break
  }
  const left = await server.call(`${path}/configmaps`)
  assert.deepEqual(
    left.body.items.map(({ metadata }) => metadata.name),
    ['held'],
  )
  const free = { metadata: { finalizers: null } }
  await server.call(`${path}/configmaps/held`, { method: 'PATCH', body: free, type: 'application/merge-patch+json' })
  for (;;) {
    const event = await events.next()
    assert.ok(event)
    if (event.type === 'DELETED') break
  }
  assert.equal((await server.call(path)).code, 404)
  events.stop()
})
