import type { Row } from './row.ts'

export const limitKinds: readonly Row[] = [
  {
    kind: 'ResourceQuota',
    plural: 'resourcequotas',
    answersDeleted: true,
    shortNames: ['quota'],
    schema: 'io.k8s.api.core.v1.ResourceQuota',
    hasStatus: true,
  },
  {
    kind: 'LimitRange',
    plural: 'limitranges',
    shortNames: ['limits'],
    schema: 'io.k8s.api.core.v1.LimitRange',
  },
]
