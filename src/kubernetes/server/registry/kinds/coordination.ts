import { equalJson, invalidValue, type KubeObject, type StatusCause } from '../../../object/index.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import type { KindDeclaration } from './kind-declaration.ts'

export const coordinationKinds: readonly KindDeclaration[] = [
  {
    group: 'coordination.k8s.io',
    kind: 'Lease',
    plural: 'leases',
    typeName: 'io.k8s.api.coordination.v1.Lease',
    columns: [
      nameColumn,
      column(
        'Holder',
        'holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is used, the holder identity must be equal to the elected LeaseCandidate.metadata.name field.',
        object => (object.spec as { holderIdentity?: string } | undefined)?.holderIdentity ?? '',
      ),
      ageColumn,
    ],
    isRenewal: isLeaseRenewal,
    validate: object => {
      const { leaseDurationSeconds, leaseTransitions } = (object.spec ?? {}) as Record<string, unknown>
      const causes: StatusCause[] = []
      if (typeof leaseDurationSeconds === 'number' && leaseDurationSeconds <= 0) {
        causes.push(invalidValue('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0'))
      }
      if (typeof leaseTransitions === 'number' && leaseTransitions < 0) {
        causes.push(invalidValue('spec.leaseTransitions', leaseTransitions, 'must be greater than or equal to 0'))
      }
      return causes
    },
  },
]

type LeaseSpec = { holderIdentity?: string; renewTime?: string; [field: string]: unknown }

/**
 * True if the holder of a Lease only renewed it. Acquiring, changing the holder, its duration or anything else, and releasing are not
 * renewals: they are durable before they are acknowledged.
 */
export function isLeaseRenewal(lease: KubeObject, oldLease: KubeObject): boolean {
  const { renewTime, ...spec } = (lease.spec ?? {}) as LeaseSpec
  const { renewTime: oldRenewTime, ...oldSpec } = (oldLease.spec ?? {}) as LeaseSpec
  return Boolean(spec.holderIdentity && renewTime && oldRenewTime) && equalJson(spec, oldSpec) && isSameMetadata(lease, oldLease)
}

/** Ignores the version and who wrote when, which every write changes. */
function isSameMetadata({ metadata }: KubeObject, { metadata: oldMetadata }: KubeObject): boolean {
  const { resourceVersion: _, managedFields, ...rest } = metadata
  const { resourceVersion: __, managedFields: oldManagedFields, ...oldRest } = oldMetadata
  const owners = managedFields?.map(({ manager, operation }) => `${operation} ${manager}`).sort()
  const oldOwners = oldManagedFields?.map(({ manager, operation }) => `${operation} ${manager}`).sort()
  return equalJson(rest, oldRest) && equalJson(owners, oldOwners)
}
