import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { compareKinds, readKinds, type ServedKinds } from './compare-kinds.ts'

const served = (kinds: Record<string, string>): ServedKinds => new Map(Object.entries(kinds))

test('the kinds that a partition lacks, or has in another scope, are named', () => {
  const home = served({ 'pods.v1': 'Namespaced', 'boats.v1.harbor.example': 'Cluster', 'cranes.v1.harbor.example': 'Cluster' })
  equal(compareKinds(home, home), undefined)
  equal(
    compareKinds(home, served({ 'pods.v1': 'Namespaced', 'boats.v1.harbor.example': 'Namespaced', 'ships.v1': 'Cluster' })),
    'it does not serve cranes.v1.harbor.example; it serves ships.v1, which home does not; the scope of boats.v1.harbor.example is another one than at home',
  )
  const many = served(Object.fromEntries(Array.from({ length: 7 }, (_, index) => [`k${index}.v1`, 'Cluster'])))
  equal(compareKinds(many, served({})), 'it does not serve k0.v1, k1.v1, k2.v1, k3.v1, k4.v1 and 2 more')
})

test('kinds are read from the discovery of a server', async () => {
  await using server = await startTestServer()
  const kinds = await readKinds(server.client)
  deepEqual([kinds.get('pods.v1'), kinds.get('nodes.v1'), kinds.get('deployments.v1.apps')], ['Namespaced', 'Cluster', 'Namespaced'])
  await rejects(
    readKinds({ request: async () => ({ json: async () => ({ kind: 'Status' }) }) as never }),
    /is not an APIGroupDiscoveryList/,
  )
})
