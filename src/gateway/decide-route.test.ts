import { deepEqual, throws } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decideOwner, decideRoute, type PartitionRole, type RoutedRequest, type RoutingMap } from './decide-route.ts'

const claims: Record<string, string> = {
  'namespaces a': 't1',
  'namespaces b': 't2',
  'nodes node-1': 'r1',
  'workers.oarlock.dev w-1': 'r2',
}
const roles = (...names: PartitionRole[]) => ({ roles: new Set(names) })
const map: RoutingMap & { partitionOfTenant(tenant: string): string | undefined; partitionOfPool(pool: string): string | undefined } = {
  epoch: 7,
  home: 'home',
  partitions: new Map([
    ['home', roles()],
    ['t1', roles('Tenants')],
    ['t2', roles('Tenants')],
    ['r1', roles('Resources')],
    ['r2', roles('Resources')],
  ]),
  partitionOf: (table, name) => claims[`${table} ${name}`],
  partitionOfTenant: tenant => ({ acme: 't1', umbrella: 't2' })[tenant],
  partitionOfPool: pool => ({ large: 'r2', old: 'gone' })[pool],
}
const kinds: Record<string, Pick<RoutedRequest, 'group' | 'plural' | 'scope'>> = {
  pods: { group: '', plural: 'pods', scope: 'Namespaced' },
  events: { group: '', plural: 'events', scope: 'Namespaced' },
  leases: { group: 'coordination.k8s.io', plural: 'leases', scope: 'Namespaced' },
  namespaces: { group: '', plural: 'namespaces', scope: 'Cluster' },
  nodes: { group: '', plural: 'nodes', scope: 'Cluster' },
  workers: { group: 'oarlock.dev', plural: 'workers', scope: 'Cluster' },
  tenants: { group: 'oarlock.dev', plural: 'tenants', scope: 'Cluster' },
  storageclasses: { group: 'storage.k8s.io', plural: 'storageclasses', scope: 'Cluster' },
  unknown: { group: 'x.example', plural: 'things', scope: undefined },
}
const others = 'default kube-node-lease kube-public kube-system oarlock-system oarlock-workers'

/** `home`, or `home + t1 without default …` for a merge. */
function route(verb: RoutedRequest['verb'], kind: string, namespace = '', name = '', about?: RoutedRequest['about']): string {
  const target = decideRoute({ verb, ...(kinds[kind] as (typeof kinds)[string]), namespace, name, about }, map)
  if (target.kind === 'one') return target.partition
  if (target.kind === 'claimed') return `claim ${target.table}`
  return target.parts
    .map(({ partition, excludedNamespaces: without }) => partition + (without.length > 0 ? ` without ${without.join(' ')}` : ''))
    .join(' + ')
}
const everywhere = (without: string) => ['home', ...['t1', 't2', 'r1', 'r2'].map(name => `${name} without ${without}`)].join(' + ')

describe('decideRoute', () => {
  test('what is in a namespace goes to the partition that has claimed it', () => {
    deepEqual(route('get', 'pods', 'a', 'p'), 't1')
    deepEqual(route('list', 'pods', 'b'), 't2')
    deepEqual(route('create', 'events', 'b'), 't2')
    deepEqual(route('watch', 'leases', 'a'), 't1')
    deepEqual(route('get', 'unknown', 'a', 'x'), 't1')
  })

  test('a namespace that no partition has is named', () => {
    for (const verb of ['list', 'get', 'create'] as const)
      throws(() => route(verb, 'pods', 'c', 'p'), /^StatusError: namespaces "c" not found$/)
  })

  test('one object of a kind in namespaces without its namespace is for home to reject', () => {
    deepEqual(route('get', 'pods', '', 'p'), 'home')
    deepEqual(route('create', 'pods'), 'home')
  })

  test('all namespaces are merged, system namespaces from home only', () => {
    deepEqual(route('list', 'pods'), everywhere(others))
    deepEqual(route('watch', 'leases'), everywhere('default kube-public kube-system oarlock-workers'))
    deepEqual(route('list', 'events'), everywhere('kube-node-lease kube-public kube-system oarlock-system oarlock-workers'))
    deepEqual(route('list', 'namespaces'), `home + t1 without ${others} + t2 without ${others}`)
    deepEqual(route('get', 'pods', 'kube-system', 'p'), 'home')
    deepEqual(route('get', 'namespaces', '', 'default'), 'home')
  })

  test('Leases of Nodes and Workers are where these are', () => {
    deepEqual(route('update', 'leases', 'kube-node-lease', 'node-1'), 'r1')
    deepEqual(route('get', 'leases', 'oarlock-system', 'w-1'), 'r2')
    deepEqual(route('get', 'leases', 'oarlock-system', 'oarlock-dispatch'), 'home')
    deepEqual(route('list', 'leases', 'oarlock-system'), 'home + r1 + r2')
    deepEqual(route('get', 'leases', 'kube-system', 'kube-scheduler'), 'home')
  })

  test('Events go with the object that they are about', () => {
    deepEqual(route('create', 'events', 'default', '', { table: 'nodes', name: 'node-1' }), 'r1')
    deepEqual(route('create', 'events', 'default', '', { table: 'services', name: 'kubernetes' }), 'home')
    deepEqual(route('patch', 'events', 'default', 'node-1.17a3b4c5'), 'r1')
    deepEqual(route('patch', 'events', 'default', 'kubernetes.17a3b4c5'), 'home')
    deepEqual(route('watch', 'events', 'default'), 'home + r1 + r2')
  })

  test('cluster-scoped kinds are owned, replicated from home, or at home', () => {
    deepEqual(route('get', 'nodes', '', 'node-1'), 'r1')
    throws(() => route('delete', 'nodes', '', 'node-9'), /^StatusError: nodes "node-9" not found$/)
    deepEqual(route('deletecollection', 'workers'), 'home + r1 + r2')
    deepEqual(route('create', 'workers'), 'claim workers.oarlock.dev')
    deepEqual(route('create', 'tenants'), 'home')
    deepEqual(route('list', 'storageclasses'), 'home')
    deepEqual(route('list', 'unknown'), 'home')
  })

  test('with one partition nothing is merged', () => {
    const alone = { ...map, partitions: new Map([['home', roles('Tenants', 'Resources')]]) }
    deepEqual(decideRoute({ ...(kinds.pods as RoutedRequest), verb: 'list', namespace: '', name: '' }, alone), {
      kind: 'one',
      partition: 'home',
    })
  })

  test('a new Lease goes to its Node or Worker, claims the name of a Worker that does not exist yet, and waits for its Node', () => {
    const create = (namespace: string, name: string, labels?: Record<string, string>) =>
      decideRoute({ verb: 'create', ...(kinds.leases as (typeof kinds)[string]), namespace, name: '', created: { name, labels } }, map)
    deepEqual(create('kube-node-lease', 'node-1'), { kind: 'one', partition: 'r1' })
    throws(() => create('kube-node-lease', 'node-2'), /nodes "node-2" not found/)
    deepEqual(create('oarlock-system', 'w-1'), { kind: 'one', partition: 'r2' })
    deepEqual(create('oarlock-system', 'w-2', { 'oarlock.dev/pool': 'large' }), { kind: 'claimed', table: 'workers.oarlock.dev' })
    // Of a controller.
    deepEqual(create('oarlock-system', 'oarlock-controller'), { kind: 'one', partition: 'home' })
  })
})

describe('decideOwner', () => {
  const namespace = (labels: Record<string, string>, tenants: readonly string[]) =>
    decideOwner('namespaces', { name: 'n', labels }, tenants, map)

  test('a namespace goes to the partition of its Tenant', () => {
    deepEqual(namespace({ 'oarlock.dev/tenant': 'umbrella' }, ['acme', 'umbrella']), { partition: 't2', tenant: 'umbrella' })
    deepEqual(namespace({}, ['acme']), { partition: 't1', tenant: 'acme' })
    throws(
      () => namespace({}, ['acme', 'umbrella']),
      /Forbidden|label oarlock.dev\/tenant is not set, and you may create namespaces of several Tenants \(acme, umbrella\)/,
    )
    throws(() => namespace({}, []), /you may create namespaces of no Tenant/)
    throws(() => namespace({ 'oarlock.dev/tenant': 'umbrella' }, ['acme']), /names the Tenant "umbrella", which you may not use/)
    throws(() => namespace({ 'oarlock.dev/tenant': 'x' }, ['acme']), /names the Tenant "x", which does not exist or has no partition/)
  })

  test('a Worker or Node goes to the partition of its label or pool', () => {
    const owner = (labels?: Record<string, string>) => decideOwner('nodes', { name: 'n', labels }, [], map)
    deepEqual(owner({ 'oarlock.dev/partition': 'r1' }), { partition: 'r1' })
    deepEqual(owner({ 'oarlock.dev/pool': 'large' }), { partition: 'r2' })
    throws(() => owner(), /nodes n has no label oarlock.dev\/partition: set oarlock.dev\/partition to one of r1, r2/)
    throws(() => owner({ 'oarlock.dev/partition': 't1' }), /belongs to partition "t1", which has no role Resources/)
    throws(() => owner({ 'oarlock.dev/pool': 'old' }), /belongs to partition "gone"/)
  })
})
