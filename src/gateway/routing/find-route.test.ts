import { deepEqual, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import type { RoutedRequest, RoutingMap } from './decide-route.ts'
import { findRoute } from './find-route.ts'

/** A gateway whose map lacks what another gateway has created a moment ago: `elsewhere` is what home knows. */
function setUp(elsewhere: Record<string, string>) {
  const known: Record<string, string> = {}
  const lookedUp: string[] = []
  const map: RoutingMap = {
    ...{ home: 'home', hasClaims: () => false, partitionOf: (table, name) => known[`${table} ${name}`] },
    partitions: new Map(['home', 't1', 'r1'].map(name => [name, { roles: new Set() }])),
  }
  const lookUp = async (table: string, name: string) => {
    const key = `${table} ${name}`
    lookedUp.push(key)
    if (elsewhere[key]) known[key] = elsewhere[key]
  }
  const find = async (request: Partial<RoutedRequest>) => {
    const target = await findRoute(
      { ...{ verb: 'get', group: '', plural: 'pods', namespace: '', name: '', scope: 'Namespaced' }, ...request },
      { map: () => map, lookUp },
    )
    return target.kind === 'one' ? target.partition : target.kind
  }
  return { find, lookedUp }
}

test('what was created through another gateway a moment ago is found', async () => {
  const { find, lookedUp } = setUp({ 'namespaces a': 't1', 'nodes n1': 'r1', 'workers.oarlock.dev w1': 'r1' })
  const leases = { group: 'coordination.k8s.io', plural: 'leases', verb: 'create' } as const
  deepEqual(await find({ namespace: 'a', name: 'p' }), 't1')
  deepEqual(await find({ namespace: 'a', name: 'q' }), 't1')
  deepEqual(await find({ plural: 'nodes', name: 'n1', scope: 'Cluster' }), 'r1')
  deepEqual(await find({ ...leases, namespace: 'oarlock-system', created: { name: 'w1' } }), 'r1')
  deepEqual(await find({ ...leases, namespace: 'oarlock-system', created: { name: 'leader' } }), 'home')
  deepEqual(lookedUp, ['namespaces a', 'nodes n1', 'workers.oarlock.dev w1', 'workers.oarlock.dev leader'])
})

test('what no partition has is not found, with its name', async () => {
  const { find } = setUp({})
  await rejects(find({ namespace: 'z', name: 'p' }), /^StatusError: namespaces "z" not found$/)
  await rejects(find({ plural: 'nodes', name: 'n9', scope: 'Cluster' }), /^StatusError: nodes "n9" not found$/)
})
