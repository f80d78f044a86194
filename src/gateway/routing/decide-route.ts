import { labels as ownLabels, systemNamespace } from '../../api/index.ts'
import { notFound, StatusError } from '../../kubernetes/object/index.ts'
import { kindClassOf, leaseOwners, ownedResources, systemNamespaces, tableOf } from '../kinds/index.ts'
import { mayMatchField, type Selection, selectsWorkerLeases } from './selected-parts.ts'

export type PartitionRole = 'Tenants' | 'Resources'

export type PartitionRoles = {
  readonly roles: ReadonlySet<PartitionRole>
  /** Those that it has or had when all partitions knew of them: it may have objects of them until it is removed. Default: none. */
  readonly announced?: ReadonlySet<PartitionRole>
  /** Nothing new is created there. Default false. */
  readonly isDeleting?: boolean
  /** False: no server has ever reported an address, so that it has nothing, and lists do not wait for it. Default true. */
  readonly isStarted?: boolean
}

/** What the gateway knows of the partitions, from one state of the objects at home. */
export type RoutingMap = {
  readonly home: string
  /** By name, home included. */
  readonly partitions: ReadonlyMap<string, PartitionRoles>
  /** By table and name of an owned object: the partition that its claim names. */
  partitionOf(table: string, name: string): string | undefined
  /** Whether there is a claim of the partition in the table: it has such objects, whatever its roles. */
  hasClaims(partition: string, table: string): boolean
}

export type RoutedRequest = {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'
  readonly group: string
  readonly plural: string
  /** Empty for cluster-scoped kinds, and for all namespaces. */
  readonly namespace: string
  readonly name: string
  /** Of the kind, from discovery; undefined if it is not known. */
  readonly scope: 'Namespaced' | 'Cluster' | undefined
  /** Of a creation or an update: what the object is about, if it is an Event. */
  readonly about?: { readonly table: string; readonly name: string } | undefined
  /** Of a creation: the new object. */
  readonly created?: { readonly name: string; readonly labels?: Readonly<Record<string, string>> } | undefined
  /** Of a list, watch or deletion of a collection. A partition that can have nothing of it is not asked. */
  readonly selection?: Selection | undefined
}

/** One partition of a merged list or watch, and the namespaces that are not part of it there: their objects, or of Namespaces they themselves. */
export type MergedPart = { readonly partition: string; readonly excludedNamespaces: readonly string[] }

export type RouteTarget =
  /** `isOnlyPart`: of a collection of which others may become parts. */
  | { readonly kind: 'one'; readonly partition: string; readonly isOnlyPart?: true }
  | { readonly kind: 'merged'; readonly parts: readonly MergedPart[] }
  /** A creation of an owned object: its partition follows from the object, and its name must be claimed. */
  | { readonly kind: 'claimed'; readonly table: string }

const eventTables: ReadonlySet<string> = new Set(['events', 'events.events.k8s.io'])
const resourceTables: readonly string[] = [...ownedResources.keys()]
const collectionVerbs: ReadonlySet<string> = new Set<RoutedRequest['verb']>(['list', 'watch', 'deletecollection'])
const leaseTable = 'leases.coordination.k8s.io'

/**
 * Where a request belongs. The gateway never guesses: what no partition is known for is rejected with what is missing.
 * @throws {StatusError} NotFound naming the namespace or object that no partition has.
 */
export function decideRoute(request: RoutedRequest, map: RoutingMap): RouteTarget {
  const table = tableOf(request)
  if (request.namespace !== '') return inNamespace(request, table, map)
  // Other requests for a kind in namespaces name one. Home rejects them in its words.
  if (request.scope === 'Namespaced')
    return collectionVerbs.has(request.verb) ? merged(allParts(table, request.selection, map), map) : one(map.home)
  const kindClass = request.scope === 'Cluster' ? kindClassOf(table) : 'home'
  if (kindClass !== 'owned') return one(map.home)
  if (request.name !== '') return one(partitionOfObject(table, request.name, map))
  return request.verb === 'create' ? { kind: 'claimed', table } : merged(ownerParts(table, request.selection, map), map)
}

function inNamespace(request: RoutedRequest, table: string, map: RoutingMap): RouteTarget {
  const { verb, name, namespace, about, selection = {} } = request
  if (!systemNamespaces.includes(namespace)) {
    const partition = map.partitionOf('namespaces', namespace)
    if (partition === undefined) throw notFound({ group: '', plural: 'namespaces' }, namespace)
    return one(partition)
  }
  const isCollection = collectionVerbs.has(verb)
  const owners = sharedOwners(table, namespace)
  if (owners.length === 0) return one(map.home)
  if (isCollection) {
    const isOfWorkers = table === leaseTable && namespace === systemNamespace && selectsWorkerLeases(selection)
    return merged(partsWith(owners, map, { alwaysHome: !isOfWorkers }), map)
  }
  const [owner = ''] = owners
  return table === leaseTable ? ofLease(request, owner, map) : one(partitionOfEvent(name, about, map))
}

/**
 * The Lease of a Node or Worker is where that is, and other Leases of the namespace are at home. A worker may create its Lease first: it
 * claims the name of the Worker.
 */
function ofLease({ name, created }: RoutedRequest, owner: string, map: RoutingMap): RouteTarget {
  const of = name || created?.name || ''
  const partition = map.partitionOf(owner, of)
  if (partition !== undefined) return one(partition)
  if (created && owner === 'nodes') throw notFound({ group: '', plural: 'nodes' }, of)
  return created?.labels?.[poolLabel] === undefined ? one(map.home) : { kind: 'claimed', table: owner }
}

/** An Event is where the object is that it is about. Its name begins with that object's, by convention, as `node-1.17a3…`. */
function partitionOfEvent(name: string, about: RoutedRequest['about'], map: RoutingMap): string {
  if (about) return map.partitionOf(about.table, about.name) ?? map.home
  const subject = name.slice(0, Math.max(0, name.lastIndexOf('.')))
  for (const table of resourceTables) {
    const partition = map.partitionOf(table, subject)
    if (partition !== undefined) return partition
  }
  return map.home
}

function partitionOfObject(table: string, name: string, map: RoutingMap): string {
  // Each partition has them; home's are served.
  if (table === 'namespaces' && systemNamespaces.includes(name)) return map.home
  const partition = map.partitionOf(table, name)
  if (partition !== undefined) return partition
  const [plural = '', ...group] = table.split('.')
  throw notFound({ group: group.join('.'), plural }, name)
}

/** The partitions with objects of all namespaces; of all but home without the namespaces that home serves. */
function allParts(table: string, selection: Selection = {}, map: RoutingMap): MergedPart[] {
  const selected = systemNamespaces.filter(namespace => mayMatchField(selection, 'metadata.namespace', namespace))
  const owners = ['namespaces', ...selected.flatMap(namespace => sharedOwners(table, namespace))]
  const excluded = systemNamespaces.filter(namespace => sharedOwners(table, namespace).length === 0)
  return partsWith(owners, map, { alwaysHome: selected.length > 0, excluded })
}

/** The partitions with objects of a cluster-scoped kind. The system namespaces are those of home. */
function ownerParts(table: string, selection: Selection = {}, map: RoutingMap): MergedPart[] {
  if (table !== 'namespaces') return partsWith([table], map)
  const alwaysHome = systemNamespaces.some(name => mayMatchField(selection, 'metadata.name', name))
  return partsWith([table], map, { alwaysHome, excluded: systemNamespaces })
}

/** The kinds of owned objects in whose partitions the objects of a system namespace are, if that is not home alone. The controllers of a partition have their own Leases in kube-system. */
function sharedOwners(table: string, namespace: string): readonly string[] {
  if (table !== leaseTable) return eventTables.has(table) && namespace === 'default' ? resourceTables : []
  const owner = leaseOwners[namespace]
  return owner === undefined ? [] : [owner]
}

/** The partitions that have or may get owned objects of one of the tables. */
function partsWith(
  tables: readonly string[],
  map: RoutingMap,
  { alwaysHome = false, excluded = [] }: { readonly alwaysHome?: boolean; readonly excluded?: readonly string[] } = {},
): MergedPart[] {
  return [...map.partitions].flatMap(([partition, { roles, announced, isStarted = true }]) => {
    const isHome = partition === map.home
    const mayHave = (table: string) =>
      (isStarted && roles.has(roleOf(table))) || announced?.has(roleOf(table)) || map.hasClaims(partition, table)
    const isPart = (isHome && alwaysHome) || tables.some(mayHave)
    return isPart ? [{ partition, excludedNamespaces: isHome ? [] : excluded }] : []
  })
}

/** That a partition needs for objects of the table. */
export const roleOf = (table: string): PartitionRole => (table === 'namespaces' ? 'Tenants' : 'Resources')

/** A merge of one part is a request to it: its versions, pages and errors are passed through. Without any, home answers with an empty list. */
function merged(parts: readonly MergedPart[], { home }: RoutingMap): RouteTarget {
  const [only = { partition: home, excludedNamespaces: [] }] = parts
  if (parts.length < 2 && only.excludedNamespaces.length === 0) return { kind: 'one', partition: only.partition, isOnlyPart: true }
  return { kind: 'merged', parts }
}

const one = (partition: string): RouteTarget => ({ kind: 'one', partition })

/** Where a new owned object goes; of a namespace with the Tenant from which this follows. */
export type ObjectOwner = { readonly partition: string; readonly tenant?: string }

/**
 * The partition for a new owned object.
 * @param tenants those that the user may create namespaces of.
 * @throws {StatusError} Forbidden or Invalid, naming the label that is missing or wrong.
 */
export function decideOwner(
  table: string,
  { name, labels = {} }: { readonly name: string; readonly labels?: Readonly<Record<string, string>> | undefined },
  tenants: readonly string[],
  map: RoutingMap & { partitionOfTenant(tenant: string): string | undefined; partitionOfPool(pool: string): string | undefined },
): ObjectOwner {
  if (table === 'namespaces') return ownerOfNamespace(name, labels[tenantLabel], tenants, map)
  const wanted = labels[partitionLabel] ?? (labels[poolLabel] === undefined ? undefined : map.partitionOfPool(labels[poolLabel]))
  const candidates = [...map.partitions]
    .filter(([, { roles, isDeleting }]) => roles.has('Resources') && !isDeleting)
    .map(([partition]) => partition)
  if (wanted === undefined && candidates.length === 1) return { partition: candidates[0] as string }
  if (wanted !== undefined && candidates.includes(wanted)) return { partition: wanted }
  const belongs = `belongs to partition ${JSON.stringify(wanted)}`
  const isDeleting = wanted !== undefined && map.partitions.get(wanted)?.isDeleting
  const what =
    wanted === undefined
      ? `has no label ${partitionLabel}`
      : isDeleting
        ? `${belongs}, which is being deleted`
        : `${belongs}, which has no role Resources`
  throw new StatusError(
    'Forbidden',
    `${table} ${name} ${what}: set ${partitionLabel} to one of ${candidates.join(', ') || 'no partition, because none has the role Resources'}`,
  )
}

function ownerOfNamespace(
  name: string,
  label: string | undefined,
  tenants: readonly string[],
  map: Pick<RoutingMap, 'partitions'> & { partitionOfTenant(tenant: string): string | undefined },
): ObjectOwner {
  const tenant = label ?? (tenants.length === 1 ? tenants[0] : undefined)
  if (tenant === undefined)
    throw new StatusError(
      'Forbidden',
      `namespaces ${JSON.stringify(name)} is forbidden: label ${tenantLabel} is not set, and ${tenants.length === 0 ? 'you may create namespaces of no Tenant' : `you may create namespaces of several Tenants (${tenants.join(', ')})`}: set it to the name of a Tenant`,
    )
  const partition = map.partitionOfTenant(tenant)
  if (partition !== undefined && !tenants.includes(tenant))
    throw new StatusError(
      'Forbidden',
      `namespaces ${JSON.stringify(name)} is forbidden: label ${tenantLabel} names the Tenant ${JSON.stringify(tenant)}, which you may not use: you need the verb "use" on tenants.oarlock.dev with this name`,
    )
  if (partition === undefined)
    throw new StatusError(
      'Forbidden',
      `namespaces ${JSON.stringify(name)} is forbidden: label ${tenantLabel} names the Tenant ${JSON.stringify(tenant)}, which does not exist or has no partition`,
    )
  const belongsTo = `namespaces ${JSON.stringify(name)} is forbidden: Tenant ${JSON.stringify(tenant)} belongs to partition ${JSON.stringify(partition)}`
  if (map.partitions.get(partition)?.isDeleting)
    throw new StatusError('Forbidden', `${belongsTo}, which is being deleted: change its label ${partitionLabel}`)
  // Not a part of lists: a gateway that has not heard of its first namespace would answer without it.
  if (!map.partitions.get(partition)?.roles.has('Tenants'))
    throw new StatusError(
      'Forbidden',
      `${belongsTo}, which has no role Tenants: change its label ${partitionLabel}, or add the role to the Partition`,
    )
  return { partition, tenant }
}

export const tenantLabel = 'oarlock.dev/tenant'
export const partitionLabel = ownLabels.partition
const poolLabel = ownLabels.pool

/** Where the objects of a list or watch are now. */
export function partsOf(routed: RoutedRequest, map: RoutingMap): readonly MergedPart[] {
  const now = decideRoute(routed, map)
  return now.kind === 'merged' ? now.parts : now.kind === 'one' ? [{ partition: now.partition, excludedNamespaces: [] }] : []
}

/** Whether no partition is known to have this owned object. */
export const isUnclaimed = ({ namespace, name }: RoutedRequest, table: string, map: Pick<RoutingMap, 'partitionOf'>) =>
  namespace === '' && !systemNamespaces.includes(name) && map.partitionOf(table, name) === undefined

/** Whether the place of a new object follows from the object itself. */
export const mayDecide = (table: string, namespace: string) =>
  namespace === '' ? kindClassOf(table) === 'owned' : systemNamespaces.includes(namespace)
