import { apiGroup } from '../../api/index.ts'
import {
  gatewayUser,
  nameClaimResource,
  type PartitionObject,
  partitionLabel,
  partitionResource,
  roleOf,
  tenantLabel,
} from '../../gateway/index.ts'
import { type KubeObject, StatusError } from '../../kubernetes/object/index.ts'
import type { AdmissionPlugin, ApiServer } from '../../kubernetes/server/index.ts'

const tenantsTable = `tenants.${apiGroup}`
const claimsTable = `${nameClaimResource.plural}.${apiGroup}`
const partitionsTable = `${partitionResource.plural}.${apiGroup}`
const namedNamespaces = 5
/** A write is committed within this time, or has failed. */
const commitWithinMs = 10_000

type Objects = Pick<ApiServer, 'getObject' | 'newestObject' | 'objectsIn'>
type Claim = KubeObject<{ spec: { resource: string; name: string; partition: string; tenant?: string } }>

/**
 * At home: the label `oarlock.dev/partition` of a Tenant is not changed or removed while the Tenant has Namespaces in another partition than the new one: new Namespaces
 * would be created there, and the Tenant would be split. The claims of home say where its Namespaces are. A Tenant that is created again gets the partition
 * of those that it has. A new claim is rejected when the Tenant is in another partition by now: a gateway learns that a moment later.
 */
export function tenantMoves(objects: () => Objects | undefined): readonly (readonly [string, AdmissionPlugin])[] {
  // What a table does not show yet: a Tenant must not move before the claim is committed.
  let admitted: { readonly spec: Claim['spec']; readonly untilMs: number }[] = []
  const ofClaim: AdmissionPlugin = ({ user, isDryRun }, object, oldObject) => {
    const { spec } = object as Claim
    // A partition claims what it has already.
    const unusable = user.name === gatewayUser.name ? unusableFor(spec, objects()) : undefined
    if (unusable !== undefined) return unusable
    if (spec.resource !== 'namespaces' || spec.tenant === undefined) return undefined
    if (oldObject && (oldObject as Claim).spec.tenant === spec.tenant) return undefined
    const partition = objects()?.newestObject(tenantsTable, undefined, spec.tenant)?.metadata.labels?.[partitionLabel]
    if (!oldObject && partition !== undefined && partition !== spec.partition)
      return `Tenant ${quote(spec.tenant)} is in partition ${quote(partition)} now, and not in ${quote(spec.partition)}; retry`
    const nowMs = Date.now()
    admitted = admitted.filter(({ untilMs }) => untilMs > nowMs)
    if (!isDryRun) admitted.push({ spec, untilMs: nowMs + commitWithinMs })
    return undefined
  }
  const ofTenant: AdmissionPlugin = (_, object, oldObject) => {
    const before = oldObject?.metadata.labels?.[partitionLabel]
    const after = object.metadata.labels?.[partitionLabel]
    if (before === after) return undefined
    const { name } = object.metadata
    const claims = (objects()?.objectsIn(claimsTable, undefined) ?? []) as Claim[]
    const nowMs = Date.now()
    const pending = admitted.filter(({ untilMs }) => untilMs > nowMs)
    const elsewhere = [...claims, ...pending]
      .map(({ spec }) => spec)
      .filter(({ resource, tenant, partition }) => resource === 'namespaces' && tenant === name && partition !== after)
    if (elsewhere.length === 0) return undefined
    const all = [...new Set(elsewhere.map(claim => claim.name))]
    const names = all.slice(0, namedNamespaces)
    const more = all.length - names.length
    const namespaces = `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
    const partitions = [...new Set(elsewhere.map(({ partition }) => quote(partition)))].join(', ')
    return `label ${partitionLabel} cannot change from ${quote(before)} to ${quote(after)}: the Tenant has namespaces in partition ${partitions} (${namespaces}); delete them first, or create another Tenant`
  }
  return [
    [tenantsTable, ofTenant],
    [claimsTable, ofClaim],
  ]
}

/** Why no gateway may create the object: it must not be missing in lists of others (`gateway/creation/announce-role.ts`), nor in a partition that is being removed. */
function unusableFor({ resource, partition }: Claim['spec'], objects: Objects | undefined): string | undefined {
  const target = objects?.newestObject(partitionsTable, undefined, partition) as PartitionObject | undefined
  if (!target || target.metadata.deletionTimestamp) return `partition ${quote(partition)} does not exist, or is being deleted`
  const role = roleOf(resource)
  if (target.status?.announcedRoles?.includes(role)) return undefined
  return `not all partitions know that partition ${quote(partition)} has the role ${role}; retry`
}

/**
 * In a partition: the label `oarlock.dev/tenant` of a Namespace names a Tenant of this partition, and is not removed. Otherwise a Namespace would not be with the
 * others of its Tenant. A new one whose Tenant is in another partition is misdirected (421).
 * @param own name of this partition.
 */
export const tenantOfPartition =
  (own: string, objects: () => Objects | undefined): AdmissionPlugin =>
  (_, object, oldObject) => {
    const before = oldObject?.metadata.labels?.[tenantLabel]
    const after = object.metadata.labels?.[tenantLabel]
    if (before === after) return undefined
    const find = (name: string) => objects()?.getObject(tenantsTable, undefined, name)
    const change = `label ${tenantLabel} cannot change from ${quote(before)} to ${quote(after)}`
    if (after === undefined) {
      // At home there can be Tenants that are in no partition.
      if (before === undefined || find(before)?.metadata.labels?.[partitionLabel] === undefined) return undefined
      return `${change}: the namespace is in partition ${quote(own)} for its Tenant; set it to another Tenant of this partition, or delete the namespace`
    }
    const tenant = find(after)
    const partition = tenant?.metadata.labels?.[partitionLabel]
    if (partition === own) return undefined
    if (oldObject === undefined) {
      // A new Namespace may be earlier than the copy of its Tenant.
      if (partition === undefined) return undefined
      throw misplaced(object.metadata.name, after, partition, own)
    }
    const where = !tenant
      ? 'that Tenant does not exist'
      : partition === undefined
        ? 'that Tenant is in no partition'
        : `that Tenant is in partition ${quote(partition)}`
    return `${change}: ${where}, and the namespace is in ${quote(own)}; choose a Tenant of that partition, or create a namespace for the other Tenant`
  }

/** The gateway that has sent it does not know yet that the Tenant has moved, and answers that the client is to retry. */
const misplaced = (name: string, tenant: string, partition: string, own: string) =>
  new StatusError(
    'Misdirected',
    `namespace ${quote(name)} belongs to partition ${quote(partition)}, which has its Tenant ${quote(tenant)}, and this one is ${quote(own)}: create it through the gateway`,
    { code: 421 },
  )

const quote = (value: string | undefined) => (value === undefined ? 'none' : JSON.stringify(value))
