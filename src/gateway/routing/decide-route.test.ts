import { deepEqual, throws } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decideOwner, decideRoute, type PartitionRole, type PartitionRoles, type RoutedRequest, type RoutingMap } from './decide-route.ts'

const claims: Record<string, string> = {
  'namespaces a': 't1',
  'namespaces b': 't2',
  'nodes node-1': 'r1',
  'workers.oarlock.dev w-1': 'r2',
}
const roles = (...names: PartitionRole[]) => ({ roles: new Set(names) })
const map: RoutingMap & { partitionOfTenant(tenant: string): string | undefined; partitionOfPool(pool: string): string | undefined } = {
  home: 'home',
  partitions: new Map([
    ['home', roles()],
    ['t1', roles('Tenants')],
    ['t2', roles('Tenants')],
    ['r1', roles('Resources')],
    ['r2', roles('Resources')],
  ]),
  partitionOf: (table, name) => claims[`${table} ${name}`],
  hasClaims: (partition, table) => Object.entries(claims).some(([key, owner]) => owner === partition && key.startsWith(`${table} `)),
  partitionOfTenant: tenant => ({ acme: 't1', umbrella: 't2', initech: 'r1' })[tenant],
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

/** `home`, or `home + t1 without default …` for a merge, and `only home` of what may become one. */
function route(verb: RoutedRequest['verb'], kind: string, namespace = '', name = '', about?: RoutedRequest['about']): string {
  return routed({ verb, ...(kinds[kind] as (typeof kinds)[string]), namespace, name, about })
}
function routed(request: RoutedRequest, of: RoutingMap = map): string {
  const target = decideRoute(request, of)
  if (target.kind === 'one') return target.isOnlyPart ? `only ${target.partition}` : target.partition
  if (target.kind === 'claimed') return `claim ${target.table}`
  return target.parts
    .map(({ partition, excludedNamespaces: without }) => partition + (without.length > 0 ? ` without ${without.join(' ')}` : ''))
    .join(' + ')
}
const parts = (names: string, without: string) =>
  names
    .split(' ')
    .map(name => (name === 'home' ? name : `${name} without ${without}`))
    .join(' + ')
/** Parts of a list, by roles and claims. */
const partsOfList = (kind: string, of: Partial<RoutingMap> = {}, selection: RoutedRequest['selection'] = {}, namespace = '') =>
  routed({ verb: 'list', ...(kinds[kind] as (typeof kinds)[string]), namespace, name: '', selection }, { ...map, ...of }).replaceAll(
    / without [a-z -]+?(?= [+]|$)/g,
    '',
  )

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
    deepEqual(route('list', 'pods'), parts('home t1 t2', others))
    deepEqual(route('watch', 'leases'), parts('home t1 t2 r1 r2', 'default kube-public kube-system oarlock-workers'))
    deepEqual(route('list', 'events'), parts('home t1 t2 r1 r2', 'kube-node-lease kube-public kube-system oarlock-system oarlock-workers'))
    deepEqual(route('list', 'namespaces'), parts('home t1 t2', others))
    deepEqual(route('get', 'pods', 'kube-system', 'p'), 'home')
    deepEqual(route('get', 'namespaces', '', 'default'), 'home')
  })

  test('a partition is part of a list with the role for it, or while it has claims in its table', () => {
    const claimsOf = (...has: string[]): Partial<RoutingMap> => ({ hasClaims: (partition, table) => has.includes(`${partition} ${table}`) })
    deepEqual(partsOfList('nodes', claimsOf()), 'r1 + r2')
    deepEqual(partsOfList('nodes', claimsOf('home nodes', 't1 namespaces')), 'home + r1 + r2')
    deepEqual(partsOfList('workers', claimsOf('home nodes')), 'r1 + r2')
    deepEqual(partsOfList('pods', claimsOf('r1 namespaces', 'home nodes')), 'home + t1 + t2 + r1')
    deepEqual(partsOfList('namespaces', claimsOf('r2 namespaces')), 'home + t1 + t2 + r2')
    deepEqual(partsOfList('events', claimsOf('t1 persistentvolumes'), {}, 'default'), 'home + t1 + r1 + r2')
    // A Node is no reason to ask for Leases of Workers.
    deepEqual(partsOfList('leases', claimsOf('t1 nodes'), {}, 'oarlock-system'), 'home + r1 + r2')
    const tenantsOnly = {
      partitions: new Map([
        ['home', roles()],
        ['t1', roles('Tenants')],
      ]),
    }
    deepEqual(partsOfList('nodes', { ...claimsOf(), ...tenantsOnly }), 'only home')
    deepEqual(partsOfList('nodes', { ...claimsOf('t1 nodes'), ...tenantsOnly }), 'only t1')
  })

  test('a partition stays part of lists when it has lost its role, and is none before its server was started', () => {
    const withT2 = (t2: PartitionRoles) => ({
      partitions: new Map([
        ['home', roles()],
        ['t1', roles('Tenants')],
        ['t2', t2],
      ]),
      hasClaims: () => false,
    })
    const announced = roles('Tenants').roles
    deepEqual(partsOfList('pods', withT2({ ...roles(), announced })), 'home + t1 + t2')
    deepEqual(partsOfList('pods', withT2({ ...roles('Tenants'), isStarted: false })), 'home + t1')
    deepEqual(partsOfList('pods', withT2({ ...roles('Tenants'), announced, isStarted: false })), 'home + t1 + t2')
    deepEqual(partsOfList('pods', withT2(roles())), 'home + t1')
  })

  test('a selection without what home has needs no answer of home', () => {
    const bucket = 'oarlock.dev/worker-bucket'
    for (const labelSelector of [bucket, `${bucket}=1`, `a=b,${bucket} in (1,2)`])
      deepEqual(partsOfList('leases', {}, { labelSelector }, 'oarlock-system'), 'r1 + r2')
    for (const labelSelector of [`!${bucket}`, `${bucket}!=1`, `${bucket} notin (1)`, 'a=b', `${bucket} in (`])
      deepEqual(partsOfList('leases', {}, { labelSelector }, 'oarlock-system'), 'home + r1 + r2')
    deepEqual(partsOfList('leases', {}, { labelSelector: bucket }, 'kube-node-lease'), 'home + r1 + r2')
    deepEqual(partsOfList('leases', {}, { labelSelector: bucket }, 'kube-system'), 'home')
    const without = others.split(' ').map(namespace => `metadata.namespace!=${namespace}`)
    deepEqual(partsOfList('pods', {}, { fieldSelector: `spec.nodeName=n,${without}` }), 't1 + t2')
    deepEqual(partsOfList('pods', {}, { fieldSelector: `${without.slice(1)}` }), 'home + t1 + t2')
    deepEqual(partsOfList('pods', {}, { fieldSelector: 'metadata.namespace=a' }), 't1 + t2')
    deepEqual(partsOfList('pods', {}, { fieldSelector: 'metadata.namespace=default' }), 'home + t1 + t2')
    deepEqual(partsOfList('pods', {}, { fieldSelector: 'no selector' }), 'home + t1 + t2')
    deepEqual(partsOfList('events', {}, { fieldSelector: `${without}` }), 't1 + t2')
    // What home has as a tenant partition is selected.
    const homeHasTenants = { hasClaims: (partition: string) => partition === 'home' }
    deepEqual(partsOfList('pods', homeHasTenants, { fieldSelector: `${without}` }), 'home + t1 + t2')
    deepEqual(partsOfList('namespaces', {}, { fieldSelector: 'metadata.name=a' }), 't1 + t2')
    deepEqual(partsOfList('namespaces', {}, { fieldSelector: 'metadata.name=default' }), 'home + t1 + t2')
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
    deepEqual(route('deletecollection', 'workers'), 'r1 + r2')
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
      isOnlyPart: true,
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
    throws(
      () => namespace({ 'oarlock.dev/tenant': 'initech' }, ['initech']),
      /Tenant "initech" belongs to partition "r1", which has no role Tenants: change its label oarlock.dev\/partition, or add the role/,
    )
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
