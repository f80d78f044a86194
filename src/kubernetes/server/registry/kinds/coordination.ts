import { invalidValue, type StatusCause } from '../../../object/index.ts'
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
