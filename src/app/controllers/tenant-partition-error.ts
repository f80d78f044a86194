import { type PartitionObject, partitionLabel } from '../../gateway/index.ts'

/** Why a Tenant cannot have Namespaces in the partition of its label; undefined: it can, or it has no label. */
export function tenantPartitionError(
  partition: string | undefined,
  partitions: readonly Pick<PartitionObject, 'metadata' | 'spec'>[],
): string | undefined {
  if (partition === undefined) return undefined
  const found = partitions.find(({ metadata }) => metadata.name === partition)
  const named = `label ${partitionLabel} names partition ${JSON.stringify(partition)}`
  const possible = partitions.filter(({ spec }) => spec.roles.includes('Tenants')).map(({ metadata }) => metadata.name)
  const choice = possible.length > 0 ? `; partitions for Tenants are ${possible.sort().join(', ')}` : '; no partition has the role Tenants'
  if (!found) return `${named}, which does not exist${choice}`
  return found.spec.roles.includes('Tenants') ? undefined : `${named}, which does not have the role Tenants${choice}`
}
