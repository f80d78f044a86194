import type { Row } from './row.ts'

export const serviceKinds: readonly Row[] = [
  {
    kind: 'Service',
    plural: 'services',
    answersDeleted: true,
    shortNames: ['svc'],
    categories: ['all'],
    schema: 'io.k8s.api.core.v1.Service',
    hasStatus: true,
  },
  {
    kind: 'Endpoints',
    plural: 'endpoints',
    shortNames: ['ep'],
    schema: 'io.k8s.api.core.v1.Endpoints',
  },
]
