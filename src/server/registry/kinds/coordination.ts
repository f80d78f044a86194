import { invalidValue, type StatusCause } from '../../../kube/index.ts'
import { ageColumn, column, nameColumn } from '../columns.ts'
import { type Row, text } from './row.ts'

export const coordinationKinds: readonly Row[] = [
  {
    group: 'coordination.k8s.io',
    kind: 'Lease',
    plural: 'leases',
    description: 'Lease defines a lease concept.',
    fields: {
      spec: {
        type: 'object',
        default: {},
        description: 'Spec contains the specification of the Lease.',
        properties: {
          acquireTime: { type: 'string', format: 'date-time', description: 'When the current lease was acquired.', nullable: true },
          holderIdentity: text('The identity of the holder of a current lease.'),
          leaseDurationSeconds: {
            type: 'integer',
            format: 'int32',
            description: 'How long candidates wait after renewTime, as they observed it, before they force acquire the lease.',
          },
          leaseTransitions: { type: 'integer', format: 'int32', description: 'The number of transitions of a lease between holders.' },
          preferredHolder: text('PreferredHolder signals to a lease holder that the lease has a more optimal holder.'),
          renewTime: {
            type: 'string',
            format: 'date-time',
            description: 'When the current holder last updated the lease.',
            nullable: true,
          },
          strategy: text('Strategy indicates the strategy for picking the leader for coordinated leader election.'),
        },
      },
    },
    columns: [
      nameColumn,
      column(
        'Holder',
        'holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is used, the holder identity must be equal to the elected LeaseCandidate.metadata.name field.',
        object => (object.spec as { holderIdentity?: string } | undefined)?.holderIdentity ?? '',
      ),
      ageColumn,
    ],
    check: object => {
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
